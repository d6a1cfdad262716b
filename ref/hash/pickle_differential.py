# SPDX-License-Identifier: Apache-2.0
# Compares the pickle and CBOR writers with Python's on objects that are drawn by a seed.
#
#   python3 ref/hash/pickle_differential.py PROGRAM [OBJECTS [SEED]]
#
# PROGRAM is the test program preimage_test, which answers as a probe. Objects are nested tuples of None, ints of every width, strings
# (lone surrogates too) and bytes; some strings are one object several times. Without the module cbor2 only pickle is compared.
import pickle
import random
import struct
import subprocess
import sys

try:
    import cbor2
except ImportError:
    cbor2 = None

SHOWN_MAX = 5
INTS = [0, 1, 23, 24, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**39, 2**47, 2**63 - 1, 2**63, 2**64 - 1, 2**64,
        2**2047]
POINTS = [0x61, 0x7F, 0x80, 0xE9, 0xFF, 0x100, 0x7FF, 0x800, 0xD800, 0xDFFF, 0xFFFF, 0x10000, 0x10FFFF]
LENGTHS = [0, 1, 1, 1, 2, 3, 10, 23, 24, 85, 127, 128, 255, 256, 257, 1000]
# One byte copied from a buffer is the interpreter's only object of it; bytes(bytearray) makes another, which no engine does.
SINGLE_BYTES = [bytes(range(256))[i:i + 1] for i in range(256)]
LONG = [21845, 65534, 65535, 65536, 65537, 200000]


def draw_int(rng):
    value = rng.choice(INTS) + rng.randrange(-2, 3) if rng.random() < 0.5 else rng.getrandbits(rng.randrange(1, 80))
    return value if rng.random() < 0.7 else -value


def draw_length(rng):
    return rng.choice(LONG) if rng.random() < 0.002 else rng.choice(LENGTHS)


def draw_leaf(rng, shared):
    kind = rng.randrange(8)
    if kind == 0:
        return None
    if kind < 4:
        return draw_int(rng)
    if kind < 6 and shared and rng.random() < 0.4:
        return rng.choice(shared)
    if kind < 6:
        point = rng.choice(POINTS) if rng.random() < 0.9 else 0x61
        value = "".join([chr(point), "b"][rng.random() < 0.1] for _ in range(draw_length(rng)))
    else:
        value = bytearray(rng.choice(b"\x00a\xff") for _ in range(draw_length(rng)))
        value = SINGLE_BYTES[value[0]] if len(value) == 1 else bytes(value)
    shared.append(value)
    return value


def draw(rng, level, shared):
    if level > 4 or rng.random() < 0.35 + 0.1 * level:
        return draw_leaf(rng, shared)
    count = rng.choice((0, 1, 2, 3, 4, 5, 16))
    if level == 0 and rng.random() < 0.01:
        count = rng.choice((300, 13104, 13105, 30000))
        return tuple(draw_leaf(rng, shared) for _ in range(count))
    return tuple(draw(rng, level + 1, shared) for _ in range(count))


def program(value, identities):
    if value is None:
        return b"N"
    if isinstance(value, int):
        if -2**63 <= value < 2**63:
            return b"I" + struct.pack("<q", value)
        digits = str(value).encode()
        return b"D" + struct.pack("<I", len(digits)) + digits
    if isinstance(value, tuple):
        return b"T" + struct.pack("<I", len(value)) + b"".join(program(item, identities) for item in value)
    content = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    identity = identities.setdefault(id(value), 16 + len(identities))
    return (b"S" if isinstance(value, str) else b"B") + struct.pack("<II", identity, len(content)) + content


def ask(process, serialisation, text):
    process.stdin.write(struct.pack("<BI", serialisation, len(text)) + text)
    process.stdin.flush()
    length, = struct.unpack("<I", process.stdout.read(4))
    return None if length == 0xFFFFFFFF else process.stdout.read(length)


def expected(serialisation, value):
    try:
        return cbor2.dumps(value, canonical=True) if serialisation else pickle.dumps(value, protocol=5)
    except UnicodeEncodeError:
        return None


def main():
    path = sys.argv[1]
    objects = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    failed = 0
    with subprocess.Popen([path, "--probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for number in range(objects):
            value = draw(rng, 0, [])
            text = program(value, {})
            for serialisation in range(2 if cbor2 else 1):
                want, seen = expected(serialisation, value), ask(process, serialisation, text)
                if want != seen:
                    failed += 1
                    if failed > SHOWN_MAX:
                        continue
                    print("object %d, %s: %.200r\n  python %s\n  ours   %s" % (
                        number, "cbor" if serialisation else "pickle", value,
                        want and want.hex()[:400], seen and seen.hex()[:400]))
        process.stdin.close()
    done = objects * (2 if cbor2 else 1)
    print("%d passed, %d failed, %d skipped" % (done - failed, failed, 0 if cbor2 else objects))
    return 1 if failed else 0


sys.exit(main())
