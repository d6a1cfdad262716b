# SPDX-License-Identifier: Apache-2.0
"""Files of test vectors (mooncheck-vectors/1): read and written (byte for byte as recorded), plain or compressed."""
import gzip
import json
import os

import zstandard

SCHEMA = "mooncheck-vectors/1"
ENDINGS = (".json", ".json.gz", ".json.zst")
COMPRESSION_LEVEL = 19


class VectorFile:
    """One file: its head (schema, suite, source) and its cases."""

    def __init__(self, path: str, head: dict, cases: list[dict]):
        self.path, self.head, self.cases = path, head, cases

    @property
    def suite(self) -> str:
        return self.head["suite"]

    def text(self) -> str:
        """One case a line; compact ASCII JSON, members in the order they have."""
        head = _compact(self.head)[:-1]
        return f'{head},"cases":[\n' + ",\n".join(map(_compact, self.cases)) + "\n]}\n"

    def write(self) -> None:
        """Writes the file under its final name only when it is whole."""
        content = self.text().encode("ascii")
        if self.path.endswith(".zst"):
            content = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL, write_checksum=True).compress(content)
        elif self.path.endswith(".gz"):
            content = gzip.compress(content, 9, mtime=0)
        part = self.path + ".part"
        try:
            with open(part, "wb") as file:
                file.write(content)
            os.replace(part, self.path)
        finally:
            if os.path.exists(part):
                os.unlink(part)


def read_text(path: str) -> str:
    with open(path, "rb") as file:
        content = file.read()
    if path.endswith(".zst"):
        content = zstandard.ZstdDecompressor().decompressobj().decompress(content)
    elif path.endswith(".gz"):
        content = gzip.decompress(content)
    return content.decode("ascii")


def read(path: str) -> VectorFile:
    document = json.loads(read_text(path))
    cases = document.pop("cases")
    if document.get("schema") != SCHEMA:
        raise ValueError(f"{path}: schema: must be {SCHEMA!r}")
    return VectorFile(path, document, cases)


def read_folder(folder: str, suites: tuple[str, ...]) -> list[VectorFile]:
    """The files of these suites, in order of their names."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(ENDINGS))
    files = (read(os.path.join(folder, name)) for name in names)
    return [file for file in files if file.suite in suites]


def _compact(value) -> str:
    return json.dumps(value, separators=(",", ":"))
