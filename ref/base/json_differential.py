# SPDX-License-Identifier: Apache-2.0
# Compares the JSON reader with Python's json on documents that are drawn and damaged by a seed.
#
#   python3 ref/base/json_differential.py PROGRAM [DOCUMENTS [SEED]]
#
# PROGRAM is the test program json_read_test, which answers as a probe. Under Python's rules the verdict and the value of every
# document must be those of json.loads. Under strict rules they must be those of json.loads with hooks that refuse what RFC 8259
# does not have or leaves undefined. What both rules refuse beyond Python, and where: see `explained`.
import json
import random
import re
import struct
import subprocess
import sys

DEPTH_MAX = 128
TOKENS = [b"[", b"]", b"{", b"}", b",", b":", b'"', b"\\", b"null", b"true", b"false", b"NaN", b"Infinity", b"-Infinity",
          b"-", b"+", b".", b"e", b"E", b"0", b"1", b"00", b"1e999", b"-0", b"9223372036854775808", b"5e-324", b"\\u",
          b"\\ud800", b"\\udc00", b"\\u00e9", b"\\/", b"\\x", b"/", b"'", b" ", b"\t", b"\r\n", b"\x0b", b"\x0c", b"\x00",
          b"\x1f", b"\x7f", b"\xc2\xa0", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80",
          b"\xf0\x9f\x98\x80", b"\xff", b'"a":', b'"a":1,', b'{"a":1,"a":2}', b"\xd9\xa1", b"// c\n"]


class Refused(ValueError):
    pass


def strict_pairs(pairs):
    if len({name for name, _ in pairs}) != len(pairs):
        raise Refused("duplicate member")
    return dict(pairs)


def strict_constant(text):
    raise Refused(text)


def strict_float(text):
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Refused("beyond the range of a double")
    return value


def expected(document, python_rules):
    """The canonical text of the value, or None where the document must be refused."""
    try:
        text = document.decode("utf-8")
        if python_rules:
            sys.set_int_max_str_digits(4300)
            value = json.loads(text)
        else:
            sys.set_int_max_str_digits(0)
            value = json.loads(text, object_pairs_hook=strict_pairs, parse_constant=strict_constant,
                               parse_float=strict_float)
    except (ValueError, RecursionError):
        return None
    sys.set_int_max_str_digits(0)
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[\ud800-\udfff]", lambda match: "\\u%04x" % ord(match[0]), written).encode("utf-8")


def depth(document):
    """Nesting of a document that is known to be well-formed."""
    deepest = level = 0
    for bracket in re.findall(rb'[\[\]{}]', re.sub(rb'"(?:[^"\\]|\\.)*"', b"", document, flags=re.S)):
        level += 1 if bracket in b"[{" else -1
        deepest = max(deepest, level)
    return deepest


def explained(document, seen):
    """Refused by the reader alone: only documents that are nested deeper than its limit."""
    return b"nested more than 128 deep" in seen and depth(document) > DEPTH_MAX


def draw_string(rng):
    out = []
    for _ in range(rng.choice((0, 1, 1, 2, 5, 20))):
        kind = rng.randrange(10)
        if kind < 5:
            out.append(rng.choice("abcdefgh _-./09"))
        elif kind == 5:
            out.append("\\" + rng.choice('"\\/bfnrt'))
        elif kind == 6:
            out.append("\\u%04x" % rng.choice((0, 0x1F, 0x41, 0xE9, 0x20AC, 0xD83D, 0xDE00, 0xD800, 0xDFFF, 0xFFFF)))
        elif kind == 7:
            out.append("\\ud83d\\ude00" if rng.random() < 0.5 else "\\uD83D\\uDE00")
        else:
            out.append(chr(rng.choice((0x7F, 0x80, 0xE9, 0x7FF, 0x800, 0x2028, 0xFEFF, 0xFFFD, 0x10000, 0x1F600, 0x10FFFF))))
    return '"' + "".join(out) + '"'


def draw_number(rng):
    kind = rng.randrange(8)
    if kind < 3:
        return str(rng.randrange(-1000, 1000))
    if kind == 3:
        return str(rng.choice((1, -1)) * (2 ** rng.choice((53, 63, 64, 200)) + rng.randrange(-2, 3)))
    if kind == 4:
        return repr(struct.unpack("<d", struct.pack("<Q", rng.getrandbits(63) % 0x7FF0000000000000))[0])
    if kind == 5:
        return "%d.%d" % (rng.randrange(-99, 99), rng.randrange(10 ** rng.randrange(1, 25)))
    if kind == 6:
        return "%d%s%s%d" % (rng.randrange(10), rng.choice("eE"), rng.choice(("", "+", "-")), rng.randrange(400))
    return rng.choice(("-0", "-0.0", "0e0", "1E400", "9" * rng.choice((4300, 4301, 20)), "NaN", "Infinity", "-Infinity"))


def draw_value(rng, level):
    space = lambda: rng.choice(("", "", "", " ", "\n", "\t", "\r\n "))
    kind = rng.randrange(9 if level < 5 else 6)
    if kind < 2:
        return draw_number(rng)
    if kind < 4:
        return draw_string(rng)
    if kind < 6:
        return rng.choice(("null", "true", "false"))
    count = rng.choice((0, 1, 2, 3, 6))
    if kind == 6:
        nested = rng.choice((1, 1, 1, 1, 2, 127, 128, 129)) if level == 0 else 1
        inside = ",".join(space() + draw_value(rng, level + nested) + space() for _ in range(count))
        return "[" * nested + space() + inside + "]" * nested
    return "{" + space() + ",".join(
        space() + (draw_string(rng) if rng.random() < 0.3 else '"%s"' % rng.choice("abcdefghijk")) + space() + ":" + space() +
        draw_value(rng, level + 1) + space() for _ in range(count)) + "}"


def damage(rng, document):
    at = rng.randrange(len(document) + 1)
    end = min(len(document), at + rng.choice((1, 1, 2, 5)))
    kind = rng.randrange(6)
    if kind == 0:
        return document[:at]
    if kind == 1:
        return document[:at] + document[end:]
    if kind == 2:
        return document[:at] + bytes([rng.randrange(256)]) + document[at + 1:]
    if kind == 3:
        return document[:at] + document[at:end] + document[at:]
    if kind == 4:
        return document[:at] + rng.choice(TOKENS) + document[end:]
    return document[:at] + rng.choice(TOKENS) + document[at:]


def draw_document(rng):
    space = rng.choice(("", "", " ", "\n"))
    document = (space + draw_value(rng, 0) + space).encode("utf-8")
    for _ in range(rng.choice((0, 0, 0, 1, 1, 1, 2, 4))):
        document = damage(rng, document)
    return document


def ask(process, document, python_rules):
    process.stdin.write(struct.pack("<BI", python_rules, len(document)) + document)
    process.stdin.flush()
    status, length = struct.unpack("<BI", process.stdout.read(5))
    return status, process.stdout.read(length)


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit("usage: json_differential.py PROGRAM [DOCUMENTS [SEED]]")
    program = sys.argv[1]
    documents = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rng = random.Random(seed)
    passed = failed = accepted = 0
    with subprocess.Popen([program, "--probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for number in range(documents):
            document = draw_document(rng)
            for python_rules in (False, True):
                want = expected(document, python_rules)
                status, seen = ask(process, document, python_rules)
                accepted += status == 0
                if (status == 0 and seen == want) or (status != 0 and (want is None or explained(document, seen))):
                    passed += 1
                    continue
                failed += 1
                print("document %d of seed %d, %s rules: %r\n  expected %r\n  seen     %d %r" %
                      (number, seed, "Python's" if python_rules else "strict", document, want, -status, seen))
        process.stdin.close()
    print("seed %d: %d of %d readings accepted" % (seed, accepted, passed + failed))
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    sys.exit(1 if failed or not 0 < accepted < passed else 0)


main()
