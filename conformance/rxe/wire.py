# SPDX-License-Identifier: Apache-2.0
"""Reads the frames of a link and checks that bytes moved one-sidedly: READ and WRITE packets, nothing sent.

  usage: wire.py FILE.pcap BYTES_READ BYTES_WRITTEN
Exit 0 if at least that many bytes travelled in READ responses and in WRITE requests, no packet was a SEND, and what
went over TCP could not have carried them.
"""
import collections
import struct
import sys

ROCE_PORT = 4791
# Base transport header: opcode, then 11 bytes. Opcodes of reliable connections; extended headers behind it, in bytes.
WRITES = {6: 16, 7: 0, 8: 0, 10: 16}
READ_RESPONSES = {13: 4, 14: 0, 15: 4, 16: 4}
REQUESTS = {12: "READ", 17: "ACKNOWLEDGE"}
SENDS = range(0, 6)
BTH_BYTES, CHECK_BYTES = 12, 4


def frames(data):
    """Every frame of a pcap file as QEMU writes it (little-endian, Ethernet)."""
    magic, _, _, _, _, _, link = struct.unpack_from("<IHHiIII", data)
    if magic != 0xA1B2C3D4 or link != 1:
        sys.exit("wire: no pcap file of Ethernet frames")
    at = 24
    while at + 16 <= len(data):
        _, _, held, _ = struct.unpack_from("<IIII", data, at)
        yield data[at + 16 : at + 16 + held]
        at += 16 + held


def ip_payload(frame):
    """(protocol, payload) of an IPv4 frame, else (None, b"")."""
    if len(frame) < 34 or frame[12:14] != b"\x08\x00":
        return None, b""
    header = (frame[14] & 15) * 4
    total = struct.unpack_from(">H", frame, 16)[0]
    return frame[23], frame[14 + header : 14 + total]


def main(path, wanted_read, wanted_written):
    with open(path, "rb") as file:
        data = file.read()
    packets, payload, tcp = collections.Counter(), collections.Counter(), 0
    for frame in frames(data):
        protocol, inside = ip_payload(frame)
        if protocol == 6:
            tcp += len(inside) - (inside[12] >> 4) * 4
        elif protocol == 17 and struct.unpack_from(">H", inside, 2)[0] == ROCE_PORT:
            opcode, pads = inside[8], inside[9] >> 4 & 3
            packets[opcode] += 1
            extended = {**WRITES, **READ_RESPONSES}.get(opcode, 0)
            payload[opcode] += len(inside) - 8 - BTH_BYTES - extended - pads - CHECK_BYTES
    read = sum(payload[opcode] for opcode in READ_RESPONSES)
    written = sum(payload[opcode] for opcode in WRITES)
    known = {*WRITES, *READ_RESPONSES, *REQUESTS}
    print(f"wire: packets by opcode {dict(sorted(packets.items()))}, {read} bytes read, {written} written, {tcp} over TCP")
    wrong = []
    if any(packets[opcode] for opcode in SENDS):
        wrong.append("something was sent")
    if any(opcode not in known for opcode in packets):
        wrong.append("an opcode that is neither READ nor WRITE")
    if read < wanted_read or written < wanted_written:
        wrong.append(f"expected {wanted_read} bytes read and {wanted_written} written")
    if tcp * 4 > max(wanted_read, wanted_written):
        wrong.append("TCP carried more than handshakes")
    for one in wrong:
        print(f"wire: {one}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
