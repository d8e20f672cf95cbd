"""Factors of terms as words of 64 bits: a bit a block, or the image under a linear map of more than 64 blocks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...schemes_db import Target
from ..seeds import splitmix_range

Words = npt.NDArray[np.uint64]

WORD_BITS = 64
"""Number of blocks of a factor of a packed term that have a bit of their own."""

HALF_BITS = 32
"""Bits of half a word: of the blocks with coefficient 1 where those with -1 are in the other half."""

_ONE = np.uint64(1)
_SEED = 64


def with_moved_bits(words: Words, moves: Iterable[tuple[int, int]]) -> Words:
    """Return words with bit `new` of each where it has bit `old`, for every pair (old, new) of moves."""
    result = np.zeros_like(words)
    for old, new in moves:
        result |= ((words >> np.uint64(old)) & _ONE) << np.uint64(new)
    return result


def is_wide(target: Target) -> bool:
    """Return whether a matrix of the target has more blocks than a word has bits."""
    m, k, n = target.shape
    return max(m * k, k * n, m * n) > WORD_BITS


@lru_cache(maxsize=64)
def block_words(target: Target) -> tuple[Words, Words, Words]:
    """Return the word of each block of A, B and C, read-only: its own bit, from the 65th block on random bits."""
    m, k, n = target.shape
    found = []
    for f, size in enumerate((m * k, k * n, m * n)):
        own = _ONE << np.arange(min(size, WORD_BITS), dtype=np.uint64)
        words = np.concatenate([own, splitmix_range(_SEED + f, 0, max(size - WORD_BITS, 0))])
        words.setflags(write=False)
        found.append(words)
    return found[0], found[1], found[2]


def bits_of_words(words: Words, count: int) -> npt.NDArray[np.int64]:
    """Return (N, count): the lowest bits of N words."""
    return ((words[:, None] >> np.arange(count, dtype=np.uint64)) & _ONE).astype(np.int64)
