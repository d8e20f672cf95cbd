"""Compiled annealing of arrangements: until they span all entries of C, then until they do over the integers, too.

Forms that are independent modulo 2 have an odd determinant. Schemes are over Z if it is 1 or -1, and have small
coefficients if the inverse of the matrix of the forms has. Imports a compiler: imported only to anneal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..terms.bits import below, compiled, next_draw
from ..terms.rings import ZERO
from ..terms.ternary_words import HALF_BITS
from ..terms.words import Words
from .span import InnerProducts, IntArray, Span, find, gain, random_vector, span_without, total

Matrix = npt.NDArray[np.float64]

CANDIDATES = 16
"""Number of inner products of which a step chooses one, the present one among them."""

_COOLING = 64
"""Steps of the same temperature."""

_SCALE = 1.0 / (1 << 53)
_ROUNDING = 1e-3
_ONE, _ELEVEN, _HALF = np.uint64(1), np.uint64(11), np.uint64(HALF_BITS)


class Candidates(NamedTuple):
    """Work space of a step: inner products, the score of each, and their weights."""

    rows: Words
    cols: Words
    variants: IntArray
    scores: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]


def candidates() -> Candidates:
    """Return work space for CANDIDATES inner products."""
    rows, cols = np.zeros((2, CANDIDATES), dtype=np.uint64)
    scores, weights = np.zeros((2, CANDIDATES))
    return Candidates(rows, cols, np.zeros(CANDIDATES, dtype=np.int64), scores, weights)


@compiled
def draw_candidates(rng: Words, of: InnerProducts, i: int, span: Span, into: Candidates) -> int:
    """Draw inner products to replace number i; return how many are distinct and not in the arrangement, i first.

    Most are the third of a triple with two others; the rest differ from i in the variant, in r or in c, or are random.
    """
    into.rows[0], into.cols[0], into.variants[0] = of.rows[i], of.cols[i], of.variants[i]
    count, drawn = len(of.rows), 1
    for _ in range(1, CANDIDATES):
        row, col, variant = of.rows[i], of.cols[i], of.variants[i]
        kind = below(rng, 10)
        if kind < 7:
            a, b = below(rng, count), below(rng, count)
            if a == i or b == i or of.variants[a] == of.variants[b]:
                continue
            row = total(of.rows[a], of.rows[b], below(rng, 2) == 1)
            col = total(of.cols[a], of.cols[b], below(rng, 2) == 1)
            variant = 3 - of.variants[a] - of.variants[b]
        elif kind == 7:
            variant = below(rng, 3)
        elif kind == 8:
            a = below(rng, count)
            if below(rng, 2):
                row = total(row, of.rows[a], below(rng, 2) == 1)
            else:
                col = total(col, of.cols[a], below(rng, 2) == 1)
        else:
            row = random_vector(rng, of.p)
            col = random_vector(rng, of.n)
            variant = below(rng, 3)
        if row == ZERO or col == ZERO or find(span, of, row, col, variant) >= 0:
            continue
        repeated = False
        for c in range(drawn):
            repeated |= into.rows[c] == row and into.cols[c] == col and into.variants[c] == variant
        if not repeated:
            into.rows[drawn], into.cols[drawn], into.variants[drawn] = row, col, variant
            drawn += 1
    return drawn


@compiled
def choose(rng: Words, among: Candidates, drawn: int, temperature: float) -> int:
    """Return the number of a candidate, with probability proportional to exp(score / temperature)."""
    most, whole = among.scores[0], 0.0
    for c in range(drawn):
        most = max(most, among.scores[c])
    for c in range(drawn):
        among.weights[c] = np.exp((among.scores[c] - most) / temperature)
        whole += among.weights[c]
    rng[0] = next_draw(rng[0])
    rest = (rng[0] >> _ELEVEN) * _SCALE * whole
    for c in range(drawn):
        rest -= among.weights[c]
        if rest < 0:
            return c
    return drawn - 1


@compiled
def anneal(
    rng: Words,
    of: InnerProducts,
    span: Span,
    among: Candidates,
    first: int,
    steps: int,
    length: int,
    hot: float,
    cold: float,
) -> tuple[int, int]:
    """Anneal for `steps` steps from step `first` of a schedule of `length`; stop where everything is spanned.

    A step takes out an inner product and chooses among CANDIDATES for it by heat bath: one that leads to dimension d
    with probability proportional to exp(d / T), T falling from `hot` to `cold`. So what the others span is computed
    once for all candidates. Returns the steps made and the dimension.
    """
    dimension = span_without(span, of, -1)
    if dimension == of.p * of.n:
        return 0, dimension
    for step in range(steps):
        schedule = (first + step) // _COOLING * _COOLING
        temperature = hot * (cold / hot) ** (schedule / length)
        i = below(rng, len(of.rows))
        others = span_without(span, of, i)
        drawn = draw_candidates(rng, of, i, span, among)
        for c in range(drawn):
            among.scores[c] = gain(span, of, i, among.rows[c], among.cols[c], among.variants[c])
        chosen = choose(rng, among, drawn, temperature)
        of.rows[i], of.cols[i], of.variants[i] = among.rows[chosen], among.cols[chosen], among.variants[chosen]
        dimension = others + np.int64(among.scores[chosen])
        if dimension == of.p * of.n:
            return step + 1, dimension
    return steps, dimension


@compiled(internal=True)
def entry(word: np.uint64, i: int) -> float:
    """Return entry i of a vector."""
    plus = (word >> np.uint64(i)) & _ONE
    minus = (word >> (np.uint64(i) + _HALF)) & _ONE
    return np.float64(plus) - np.float64(minus)


@compiled
def eliminate(matrix: Matrix, inverts: bool) -> float:
    """Return log |det|, by elimination with partial pivoting, which overwrites the matrix.

    With `inverts` its entries are then those of the inverse, in another order.
    """
    size, logarithm = len(matrix), 0.0
    for k in range(size):
        first = 0 if inverts else k + 1
        best = k
        for i in range(k + 1, size):
            best = i if abs(matrix[i, k]) > abs(matrix[best, k]) else best
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
