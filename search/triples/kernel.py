"""Compiled annealing of arrangements until they span all entries of C over the integers, by a core or by the lanes of a
warp (`span`), then until their schemes have small coefficients.

Imports a compiler: imported only to anneal.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..terms.bits import below, compiled, next_draw
from ..terms.lanes import lane, meet, width
from ..terms.rings import ZERO
from ..terms.words import Words
from .dual import Dual, candidate_index, candidate_weight, fill_dual, follow
from .span import NONE, InnerProducts, IntArray, Span, enter, find, gain, lacking, leave, random_vector, total

CANDIDATES = 16
"""Number of inner products of which a step chooses one, the present one among them."""

ROUNDING = 1e-3
"""A magnitude of log |det| below this counts as 0: beyond rounding, |det| is 1."""

_REFRESH = 2048
"""Steps after which the dual basis is computed anew, as rounding errors grow."""

_SCALE = 1.0 / (1 << 53)
_ELEVEN, _ODD = np.uint64(11), np.uint64(0x9E3779B97F4A7C15)


class Candidates(NamedTuple):
    """Work space of a step: inner products, the present one first, a mark of each, NONE if it can't be chosen, else 0,
    and its energy.

    Attributes:
        rows, cols, variants, marks, energies: (CANDIDATES,)
        rng: (1,) state of the draws for one candidate; of a lane.
    """

    rows: Words
    cols: Words
    variants: IntArray
    marks: IntArray
    energies: npt.NDArray[np.float64]
    rng: Words


def candidates() -> Candidates:
    """Return work space for CANDIDATES inner products."""
    rows, cols = np.zeros((2, CANDIDATES), dtype=np.uint64)
    variants, marks = np.zeros((2, CANDIDATES), dtype=np.int64)
    return Candidates(rows, cols, variants, marks, np.zeros(CANDIDATES), np.zeros(1, dtype=np.uint64))


@compiled(internal=True)
def draw_candidate(into: Candidates, c: int, of: InnerProducts, i: int, span: Span) -> None:
    """Draw candidate c for inner product i, which has left the space; mark it if it is zero or in the space.

    Most are the third of a triple with two others; the rest differ from i in the variant, in r or in c, or are random.
    """
    rng, row, col, variant = into.rng, of.rows[i], of.cols[i], of.variants[i]
    kind, count = below(rng, 10), len(of.rows)
    if kind < 7:
        a, b = below(rng, count), below(rng, count)
        if a == i or b == i or of.variants[a] == of.variants[b]:
            row = ZERO
        else:
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
    into.rows[c], into.cols[c], into.variants[c] = row, col, variant
    none = row == ZERO or col == ZERO or find(span, of, row, col, variant) != NONE
    into.marks[c] = NONE if none else 0


@compiled
def draw_candidates(rng: Words, into: Candidates, of: InnerProducts, i: int, span: Span) -> None:
    """Draw inner products to replace number i, which has left the space; mark those that are repeated."""
    rng[0] = next_draw(rng[0])
    if lane() == 0:
        into.rows[0], into.cols[0], into.variants[0], into.marks[0] = of.rows[i], of.cols[i], of.variants[i], 0
    for c in range(lane(), CANDIDATES, width()):
        if c:
            into.rng[0] = rng[0] ^ (np.uint64(c) * _ODD)
            into.rng[0] = next_draw(into.rng[0])
            draw_candidate(into, c, of, i, span)
    meet()
    for c in range(lane(), CANDIDATES, width()):
        row, col, variant, repeated = into.rows[c], into.cols[c], into.variants[c], into.marks[c] == NONE
        for b in range(c):
            repeated |= into.rows[b] == row and into.cols[b] == col and into.variants[b] == variant
        into.marks[c] = NONE if repeated else 0
    meet()


@compiled(internal=True)
def set_energies(span: Span, of: InnerProducts, among: Candidates, dual: Dual, heat: float, index_heat: float) -> None:
    """Set the energies of candidates: log |det| / index_heat and what the space lacks / heat, both up to a constant."""
    for c in range(lane(), CANDIDATES, width()):
        energy = np.inf
        if among.marks[c] != NONE:
            count = gain(span, of, among.rows[c], among.cols[c], among.variants[c])
            energy = candidate_index(span, dual, of.n, count) / index_heat - count / heat
        among.energies[c] = energy
    meet()


@compiled(internal=True)
def set_weights(span: Span, of: InnerProducts, among: Candidates, dual: Dual, index: float, heat: float) -> None:
    """Set the energies of candidates with which all is spanned and |det| is 1: the weight / heat; for one lane."""
    lacks = lacking(span)
    for c in range(CANDIDATES):
        energy = np.inf
        whole = among.marks[c] != NONE and gain(span, of, among.rows[c], among.cols[c], among.variants[c]) == lacks
        if whole and abs(index + candidate_index(span, dual, of.n, lacks)) < ROUNDING:
            energy = candidate_weight(span, dual, of.n, lacks) / heat
        among.energies[c] = energy


@compiled
def choose(rng: Words, among: Candidates) -> int:
    """Return a candidate with probability proportional to exp(-energy)."""
    least, whole = np.inf, 0.0
    for c in range(CANDIDATES):
        least = min(least, among.energies[c])
    for c in range(CANDIDATES):
        whole += math.exp(least - among.energies[c])
    rng[0] = next_draw(rng[0])
    rest, chosen = (rng[0] >> _ELEVEN) * _SCALE * whole, 0
    for c in range(CANDIDATES):
        if among.energies[c] < np.inf and rest >= 0.0:
            rest -= math.exp(least - among.energies[c])
            chosen = c
    return chosen


@compiled
def take_out(span: Span, of: InnerProducts, dual: Dual, i: int) -> float:
    """Take inner product i out of the space; return by how much log |det| rises."""
    leave(span, of, i)
    return follow(span, dual, of.n)


@compiled
def put_in(span: Span, of: InnerProducts, dual: Dual, i: int, among: Candidates, c: int) -> float:
    """Put candidate c in the place of inner product i, which is out; return by how much log |det| rises."""
    if lane() == 0:
        of.rows[i], of.cols[i], of.variants[i] = among.rows[c], among.cols[c], among.variants[c]
    meet()
    enter(span, of, i)
    return follow(span, dual, of.n)


@compiled
def anneal(
    rng: Words,
    of: InnerProducts,
    span: Span,
    among: Candidates,
    dual: Dual,
    first: int,
    steps: int,
    length: int,
    cooling: tuple[float, float, float],
) -> tuple[int, int, float]:
    """Anneal for `steps` steps from step `first` of a schedule of `length`; stop where all is spanned with |det| 1.

    A step takes out an inner product and chooses among CANDIDATES for it by heat bath: dimensions at a temperature that
    falls from cooling[0] to cooling[1], log |det| at cooling[2]. So the space without it is computed once for all.
    Returns the steps made, how many dimensions the space lacks, and log |det|.
    """
    hot, cold, index_heat = cooling
    index = np.inf
    for step in range(steps):
        if step % _REFRESH == 0 or index == np.inf:
            index = fill_dual(span, of, dual)
        if index < ROUNDING and lacking(span) == 0:
            return step, 0, index
        heat = hot * (cold / hot) ** ((first + step) / length)
        i = below(rng, len(of.rows))
        index += take_out(span, of, dual, i)
        draw_candidates(rng, among, of, i, span)
        set_energies(span, of, among, dual, heat, index_heat)
        index += put_in(span, of, dual, i, among, choose(rng, among))
    return steps, lacking(span), index


@compiled
def lighten(rng: Words, of: InnerProducts, span: Span, among: Candidates, dual: Dual, steps: int, heat: float) -> None:
    """Replace inner products by heat bath, all spanned with |det| 1 throughout, at a temperature of the weight.

    The weight is the logarithm of the sum of the magnitudes of the dual basis. For one lane.
    """
    index = np.inf
    for step in range(steps):
        if step % _REFRESH == 0 or index == np.inf:
            index = fill_dual(span, of, dual)
        i = below(rng, len(of.rows))
        index += take_out(span, of, dual, i)
        draw_candidates(rng, among, of, i, span)
        set_weights(span, of, among, dual, index, heat)
        index += put_in(span, of, dual, i, among, choose(rng, among))
