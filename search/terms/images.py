"""Factors of more than 64 blocks in one word, as a random linear image, and the way back.

A walk over GF(2) only adds factors, compares them and tests whether one is zero. A linear map changes no result of
these, so a walk does the same on images of 64 bits, unless the map takes a nonzero sum of factors to zero. At random
that has a probability of 2^-64; the find is no scheme then, and its proof fails.

The blocks of a factor are computed from the other two: the equations sum_r (u_r x v_r) w_r = T are linear in w, and
have one solution for each block of w if the products u_r x v_r are independent. Images of u and v suffice, as random
maps to 64 x 64 bits most likely keep the products independent. Of dependent products some are superfluous: the solution
leaves them out, and the rank is lower than that of the walk.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db import Target
from .bits import ONE
from .linear import Digits, decompose, solve
from .rings import GF2
from .words import WORD_BITS, Words, bits_of_words, block_words


def factors_of(target: Target, words: Words) -> tuple[npt.NDArray[np.int64], ...]:
    """Return U (R, mk), V (R, kn) and W (R, mn) of terms over GF(2), given the words (3, R) of their factors.

    Terms that a linear dependence makes superfluous are left out.

    Raises:
        PlanError: no factors of the target have these words.
    """
    factors = [
        bits_of_words(words[f], len(table)) if len(table) <= WORD_BITS else _wide_factor(target, words, f)
        for f, table in enumerate(block_words(target))
    ]
    needed = np.logical_and.reduce([factor.any(axis=1) for factor in factors])
    return tuple(factor[needed] for factor in factors)


def _wide_factor(target: Target, words: Words, f: int) -> npt.NDArray[np.int64]:
    """Return (R, blocks): a factor, by the equations in the words of the other two."""
    tables, (g, h) = block_words(target), ((f + 1) % 3, (f + 2) % 3)
    terms = target.terms[target.term_values % 2 == 1]
    # (64, 64, R): bit i of one factor and bit j of the other, of each product
    first, second = (bits_of_words(words[other], WORD_BITS).T.astype(np.uint8) for other in (g, h))
    rows = _packed(first)[:, None] & _packed(second)[None]
    rows = np.ascontiguousarray(rows.reshape(WORD_BITS**2, 1, -1))
    right = np.zeros((len(tables[f]), WORD_BITS), dtype=np.uint64)  # bit j of row i of each block
    for i in range(WORD_BITS):
        at = (tables[g][terms[:, g]] >> np.uint64(i)) & ONE == ONE
        np.bitwise_xor.at(right, (terms[at, f], i), tables[h][terms[at, h]])
    ring = (0,) * GF2
    rank, order, pivots = decompose(ring, rows, words.shape[1])
    vector, digits = np.empty(rows.shape[1:], dtype=np.uint64), np.empty(rank, dtype=np.int8)
    factor = np.zeros((words.shape[1], len(tables[f])), dtype=np.int64)
    for block, wanted in enumerate(right):
        sides: Digits = bits_of_words(wanted, WORD_BITS).astype(np.int8).ravel()
        if not solve(ring, rows, rank, order, pivots, sides, vector, digits):
            raise PlanError(f"no scheme of {target} has these {words.shape[1]} products: a walk went wrong")
        factor[pivots[:rank], block] = digits
    return factor


def _packed(bits: npt.NDArray[np.uint8]) -> Words:
    """Return rows of bits (rows, R) as words (rows, R / 64), the first bit lowest."""
    padded = np.pad(bits, ((0, 0), (0, -bits.shape[1] % WORD_BITS)))
    return np.ascontiguousarray(np.packbits(padded, axis=1, bitorder="little")).view(np.uint64)
