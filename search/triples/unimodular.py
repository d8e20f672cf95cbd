"""Compiled annealing of a complete arrangement until its forms span the entries of C over the integers, too.

Forms that are independent modulo 2 have an odd determinant. Schemes are over Z if it is 1 or -1, and have small
coefficients if the inverse of the matrix of the forms has. Imports a compiler: imported only to anneal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..terms.bits import below, compiled
from ..terms.ternary_words import HALF_BITS
from ..terms.words import Words
from .kernel import Candidates, choose, draw_candidates
from .span import InnerProducts, Span, gain, span_without

Matrix = npt.NDArray[np.float64]

_ONE, _HALF = np.uint64(1), np.uint64(HALF_BITS)
_ROUNDING = 1e-3


@compiled(internal=True)
def entry(word: np.uint64, i: int) -> float:
    """Return entry i of a vector."""
    plus = (word >> np.uint64(i)) & _ONE
    minus = (word >> (np.uint64(i) + _HALF)) & _ONE
    return np.float64(plus) - np.float64(minus)


@compiled(internal=True)
def pivot_row(matrix: Matrix, k: int) -> int:
    """Return the row from k on with the largest entry in column k."""
    best = k
    for i in range(k + 1, len(matrix)):
        if abs(matrix[i, k]) > abs(matrix[best, k]):
            best = i
    return best


@compiled
def eliminate(matrix: Matrix, inverts: bool) -> float:
    """Return log |det|, by elimination with partial pivoting, which overwrites the matrix.

    With `inverts` its entries are then those of the inverse, in another order.
    """
    size, logarithm = len(matrix), 0.0
    for k in range(size):
        first = 0 if inverts else k + 1
        best = pivot_row(matrix, k)
        pivot = matrix[best, k]
        if pivot == 0:
            return np.inf
        logarithm += np.log(abs(pivot))
        matrix[best, k] = matrix[k, k]
        matrix[k, k] = 1.0
        for j in range(first, size):
            if best != k and j != k:
                matrix[k, j], matrix[best, j] = matrix[best, j], matrix[k, j]
            matrix[k, j] /= pivot
        for i in range(first, size):
            factor = matrix[i, k]
            if i != k and factor != 0:
                matrix[i, k] = 0.0
                for j in range(first, size):
                    matrix[i, j] -= factor * matrix[k, j]
    return logarithm


@compiled
def log_inverse(matrix: Matrix) -> float:
    """Return the logarithm of the sum of |entries| of the inverse; infinite if |det| is not 1. Overwrites it."""
    if abs(eliminate(matrix, True)) > _ROUNDING:
        return np.inf
    entries = 0.0
    for i in range(len(matrix)):
        for j in range(len(matrix)):
            entries += abs(matrix[i, j])
    return np.log(entries)


@compiled
def energy(of: InnerProducts, span: Span, matrix: Matrix, of_inverse: bool) -> float:
    """Return `log_inverse` or log |det| of the first forms that are independent modulo 2.

    It is infinite if they do not span everything.
    """
    if span_without(span, of, -1) < len(matrix):
        return np.inf
    for k in range(len(matrix)):
        row, col = of.rows[span.firsts[k]], of.cols[span.seconds[k]]
        for i in range(of.p):
            for j in range(of.n):
                matrix[k, i * of.n + j] = entry(row, i) * entry(col, j)
    return log_inverse(matrix) if of_inverse else eliminate(matrix, False)


@compiled
def lower(
    rng: Words,
    of: InnerProducts,
    span: Span,
    among: Candidates,
    matrix: Matrix,
    of_inverse: bool,
    steps: int,
    temperature: float,
    goal: float,
) -> tuple[int, float]:
    """Replace inner products by heat bath, all forms spanned throughout, until the energy is below `goal`.

    The energy is the logarithm of the determinant of the forms or, with `of_inverse`, that of the sum of the entries of
    their inverse (`energy`). Returns the steps made and the energy. `matrix` (p n, p n) is work space.
    """
    now = energy(of, span, matrix, of_inverse)
    for step in range(steps):
        if now < goal:
            return step, now
        i = below(rng, len(of.rows))
        needed = of.p * of.n - span_without(span, of, i)
        drawn = draw_candidates(rng, of, i, span, among)
        kept = 0
        for c in range(drawn):
            if gain(span, of, i, among.rows[c], among.cols[c], among.variants[c]) == needed:
                among.rows[kept], among.cols[kept] = among.rows[c], among.cols[c]
                among.variants[kept] = among.variants[c]
                kept += 1
        if kept < 2:
            continue
        for c in range(kept):
            of.rows[i], of.cols[i], of.variants[i] = among.rows[c], among.cols[c], among.variants[c]
            among.scores[c] = -now if c == 0 else -energy(of, span, matrix, of_inverse)
        chosen = choose(rng, among, kept, temperature)
        of.rows[i], of.cols[i], of.variants[i] = among.rows[chosen], among.cols[chosen], among.variants[chosen]
        now = -among.scores[chosen]
    return steps, now
