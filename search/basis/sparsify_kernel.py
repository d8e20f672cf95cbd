"""Reduction of nonzeros by changes of basis over GF(2), compiled: steepest descent over shears."""

from __future__ import annotations

import numpy as np

from ..terms.bits import compiled, popcount
from ..terms.words import Words

_ZERO = np.uint64(0)
FULL = 1 << 20
"""Weight of a full product in nonzeros: above the total of nonzeros, so that no half product becomes full."""


@compiled(internal=True)
def ones(word: np.uint64) -> int:
    """Return the number of set bits as a signed integer: sums of signed and unsigned ones would be floating."""
    return np.int64(popcount(word))  # type: ignore[return-value]  # compiled, it is one


@compiled(forceinline=True)
def half_in(masks: Words, f: np.uint64, support: np.uint64) -> bool:
    """Return whether factor f with this support makes a product half, or zero; `masks` begin with `half_masks`."""
    return support & ~masks[f] == _ZERO or support & ~masks[f + np.uint64(3)] == _ZERO


@compiled(internal=True)
def is_full(a: np.uint64, b: np.uint64, c: np.uint64, masks: Words) -> bool:
    """Return whether a product of factors with these supports is full."""
    return not (half_in(masks, _ZERO, a) or half_in(masks, np.uint64(1), b) or half_in(masks, np.uint64(2), c))


@compiled(nogil=True)
def sparsify_kernel(words: Words, table: Words, masks: Words) -> None:
    """Apply the shear that lowers full products, then nonzeros, most, until none does; `words` is (3, R), in place.

    `table` and `masks` are `shear_table` and `half_masks` of `shears`.
    """
    rank, halves = words.shape[1], masks.any()
    while True:
        best, gain = -1, 0
        for s in range(len(table)):
            f, g = np.int64(table[s, 0, 0]), np.int64(table[s, 1, 0])
            change = 0
            for r in range(rank):
                moved_f = ((words[f, r] >> table[s, 0, 1]) & table[s, 0, 2]) << table[s, 0, 3]
                moved_g = ((words[g, r] >> table[s, 1, 1]) & table[s, 1, 2]) << table[s, 1, 3]
                if moved_f | moved_g == _ZERO:
                    continue
                new_f, new_g = words[f, r] ^ moved_f, words[g, r] ^ moved_g
                change += ones(new_f) + ones(new_g) - ones(words[f, r]) - ones(words[g, r])
                if halves:
                    u, v, w = words[0, r], words[1, r], words[2, r]
                    before = is_full(u, v, w, masks)
                    u = new_f if f == 0 else u  # f < g
                    v = new_f if f == 1 else new_g if g == 1 else v
                    w = new_g if g == 2 else w
                    change += FULL * (int(is_full(u, v, w, masks)) - int(before))
            if change < gain:
                best, gain = s, change
        if best < 0:
            return
        for side in range(2):
            f = np.int64(table[best, side, 0])
            for r in range(rank):
                bits = (words[f, r] >> table[best, side, 1]) & table[best, side, 2]
                words[f, r] ^= bits << table[best, side, 3]
