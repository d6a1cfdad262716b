# SPDX-License-Identifier: Apache-2.0
"""A real Mooncake store client that owns a segment: puts one object over a protocol, says its digest, and stays."""
import argparse
import random
import signal
import sys

import xxhash
from mooncake.store import MooncakeDistributedStore


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", required=True)
    parser.add_argument("--master", required=True)
    parser.add_argument("--protocol", default="rdma")
    parser.add_argument("--device", default="")
    parser.add_argument("--key", default="object")
    parser.add_argument("--bytes", type=int, default=1 << 20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    value = random.Random(args.seed).randbytes(args.bytes)
    store = MooncakeDistributedStore()
    code = store.setup(args.host, "P2PHANDSHAKE", 64 << 20, 16 << 20, args.protocol, args.device, args.master)
    if code == 0:
        code = store.put(args.key, value)
    if code != 0:
        sys.exit(f"real_owner: {code}")
    print(f"real put bytes={len(value)} digest={xxhash.xxh3_64_hexdigest(value)}", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    print(f"real get equal={store.get(args.key) == value}", flush=True)
    store.close()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
