# SPDX-License-Identifier: Apache-2.0
"""Deterministic KV bytes: every byte says which layer, head, half (K or V) and token (with its whole prefix) it is.

    prefix(-1) = 0
    prefix(i)  = first 8 bytes, little-endian, of BLAKE2b-64( LE64(prefix(i-1)) || LE32(token[i]) )
    word(layer, head, half, i, j) = mix( mix( prefix(i) + GOLDEN * (1 + ((layer << 24) | (head << 8) | half)) ) + j )
    mix = the finaliser of SplitMix64, all sums modulo 2^64

A cell (layer, global head, token) is the K half (half 0) followed by the V half (half 1), of one word each here.
"""
import hashlib
import threading

import numpy

GOLDEN = 0x9E3779B97F4A7C15
MIX_1, MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
MASK = (1 << 64) - 1
CANARY = 0xC7  # memory holds this before anything is loaded or computed
VOCABULARY = 50000
CELL_BYTES = 16


def mix(x: numpy.ndarray) -> numpy.ndarray:
    """SplitMix64 finaliser over an array of uint64."""
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(MIX_1)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(MIX_2)
    return x ^ (x >> numpy.uint64(31))


def places(num_layers: int, num_heads: int) -> numpy.ndarray:
    """What tells the halves of a token apart: uint64 array (layer, head, half)."""
    return numpy.array([[[GOLDEN * (1 + (layer << 24 | head << 8 | half)) & MASK for half in (0, 1)]
                         for head in range(num_heads)] for layer in range(num_layers)], dtype=numpy.uint64)


def cells(prefixes: numpy.ndarray, where: numpy.ndarray) -> numpy.ndarray:
    """uint8 array (token, layer, head, CELL_BYTES)."""
    words = mix(mix(prefixes[:, None, None, None] + where[None]))  # word j = 0
    return numpy.ascontiguousarray(words).view(numpy.uint8)


class Text:
    """The tokens of one request, with their prefixes and cells; grows with the request. Any thread may ask."""

    def __init__(self, where: numpy.ndarray):
        self._where, self._last, self._count = where, 0, 0
        self._growing = threading.Lock()
        self._prefixes = numpy.zeros(0, dtype=numpy.uint64)
        self._cells = cells(self._prefixes, where)

    def cells(self, tokens) -> numpy.ndarray:
        """The cells of all `tokens`, of which those given before are a prefix."""
        with self._growing:
            if len(tokens) > self._count:
                self._extend([int(token) for token in tokens[self._count:]])
            return self._cells[:len(tokens)]

    def next_token(self, tokens) -> int:
        """The token that the imaginary model samples after `tokens`."""
        self.cells(tokens)
        x = int(self._prefixes[len(tokens) - 1])
        x = (x ^ x >> 30) * MIX_1 & MASK  # mix() of one number
        x = (x ^ x >> 27) * MIX_2 & MASK
        return (x ^ x >> 31) % VOCABULARY

    def _extend(self, tokens: list[int]) -> None:
        new = []
        for token in tokens:
            content = self._last.to_bytes(8, "little") + token.to_bytes(4, "little")
            self._last = int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")
            new.append(self._last)
        prefixes = numpy.array(new, dtype=numpy.uint64)
        self._prefixes = numpy.concatenate([self._prefixes, prefixes])
        self._cells = numpy.concatenate([self._cells, cells(prefixes, self._where)])
        self._count = len(self._prefixes)
