# SPDX-License-Identifier: Apache-2.0
"""A real Mooncake transfer engine that reads a foreign owner's memory and writes other bytes there; says both digests."""
import argparse
import sys

import numpy
import xxhash
from mooncake.engine import TransferEngine


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--address", required=True, help="hex")
    parser.add_argument("--bytes", type=int, default=1 << 20)
    args = parser.parse_args()
    engine = TransferEngine()
    if engine.initialize(args.host, "P2PHANDSHAKE", "rdma", args.device) != 0:
        sys.exit("real_requester: the engine does not start")
    memory = numpy.zeros(args.bytes, dtype=numpy.uint8)
    own, remote = memory.ctypes.data, int(args.address, 16)
    if engine.register_memory(own, args.bytes) != 0:
        sys.exit("real_requester: the engine does not register memory")
    if engine.transfer_sync_read(args.peer, own, remote, args.bytes) != 0:
        sys.exit("real_requester: the read failed")
    print(f"real read bytes={args.bytes} digest={xxhash.xxh3_64_hexdigest(memory.tobytes())}", flush=True)
    memory[:] = memory[::-1].copy()
    if engine.transfer_sync_write(args.peer, own, remote, args.bytes) != 0:
        sys.exit("real_requester: the write failed")
    print(f"real write bytes={args.bytes} digest={xxhash.xxh3_64_hexdigest(memory.tobytes())}", flush=True)


if __name__ == "__main__":
    main()
