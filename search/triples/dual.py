"""The dual basis of a span over the rationals, as inner products come and go, and the determinant of its forms.

Forms that are independent modulo 2 have an odd determinant. Schemes are over Z if it is 1 or -1, and have small
coefficients if the dual basis has. A vacant place keeps the form that it had, at first an entry of C, so that there
always is a dual basis. As in `span`, lanes work together: a lane has every width-th functional. Imports a compiler:
imported only to anneal.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..terms.bits import compiled, first_bit
from ..terms.lanes import lane, meet, width
from ..terms.ternary_words import HALF_BITS, support_of
from .span import GAIN, InnerProducts, Span, begin, enter

Numbers = npt.NDArray[np.float64]

_TINY = 1e-9
"""Magnitude below which a value is rounding: those that matter are quotients of odd numbers."""

_ONE, _HALF, _BITS = np.uint64(1), np.uint64(HALF_BITS), np.uint64(63)


class Dual(NamedTuple):
    """The dual basis over the rationals, of forms whose entries are -1, 0 and 1, and work space.

    Attributes:
        functionals: (p n, p n) entry [e, s] is the coefficient of functional s at entry e of a form.
        tried: (p n, p n) those with a candidate.
        values, column, sums: (p n,) values of all functionals at a form; coefficients of one functional; magnitudes.
        minor: (GAIN, GAIN) values of forms at vacant places; of a lane.
    """

    functionals: Numbers
    tried: Numbers
    values: Numbers
    column: Numbers
    sums: Numbers
    minor: Numbers


def dual_space(size: int) -> Dual:
    """Return work space for forms of so many entries."""
    functionals, tried = np.zeros((2, size, size))
    values, column, sums = np.zeros((3, size))
    return Dual(functionals, tried, values, column, sums, np.zeros((GAIN, GAIN)))


@compiled(internal=True)
def signed(row: np.uint64, col: np.uint64, i: np.uint64, j: np.uint64) -> float:
    """Return entry i, j of a form, both vectors nonzero there."""
    minus = ((row >> (i + _HALF)) ^ (col >> (j + _HALF))) & _ONE
    return 1.0 - 2.0 * np.float64(minus)


@compiled(internal=True)
def value_at(functionals: Numbers, row: np.uint64, col: np.uint64, n: int, place: int) -> float:
    """Return the value of one functional at a form."""
    value, rows = 0.0, support_of(row)
    while rows:
        i = first_bit(rows)
        rows &= rows - _ONE
        cols = support_of(col)
        while cols:
            j = first_bit(cols)
            cols &= cols - _ONE
            value += signed(row, col, i, j) * functionals[np.int64(i) * n + np.int64(j), place]
    return value


@compiled(internal=True)
def set_values(functionals: Numbers, dual: Dual, row: np.uint64, col: np.uint64, n: int) -> None:
    """Set `dual.values` to those of functionals at a form."""
    values, size = dual.values, len(dual.values)
    for other in range(lane(), size, width()):
        values[other] = 0.0
    rows = support_of(row)
    while rows:
        i = first_bit(rows)
        rows &= rows - _ONE
        cols = support_of(col)
        while cols:
            j = first_bit(cols)
            cols &= cols - _ONE
            sign, entry = signed(row, col, i, j), np.int64(i) * n + np.int64(j)
            for other in range(lane(), size, width()):
                values[other] += sign * functionals[entry, other]
    meet()


@compiled(internal=True)
def exchange(functionals: Numbers, dual: Dual, place: int) -> float:
    """Put the form whose values are set in a place of a dual basis; return by how much log |det| rises.

    The value at that place is odd over odd; where rounding made it 0, infinity is returned and nothing changed.
    """
    values, column, size = dual.values, dual.column, len(dual.values)
    pivot = values[place]
    if abs(pivot) < _TINY:
        return np.inf
    for entry in range(lane(), size, width()):
        column[entry] = functionals[entry, place] / pivot
    meet()
    for entry in range(size):
        factor = column[entry]
        if factor != 0.0:
            for other in range(lane(), size, width()):
                functionals[entry, other] -= factor * values[other]
    meet()
    for entry in range(lane(), size, width()):
        functionals[entry, place] = column[entry]
    meet()
    return math.log(abs(pivot))


@compiled(internal=True)
def follow(span: Span, dual: Dual, n: int) -> float:
    """Change the dual basis as the span was since its changes were last counted; return by how much log |det| rose."""
    rise = 0.0
    for change in range(span.counts[1]):
        row, col, place = span.changes[0, change], span.changes[1, change], np.int64(span.changes[2, change])
        set_values(dual.functionals, dual, row, col, n)
        rise += exchange(dual.functionals, dual, place)
    span.counts[1] = 0
    return rise


@compiled
def fill_dual(span: Span, of: InnerProducts, dual: Dual) -> float:
    """Set the space to what all inner products and their triples span, and the dual basis; return log |det|."""
    index = 0.0
    for entry in range(len(dual.values)):
        for other in range(lane(), len(dual.values), width()):
            dual.functionals[entry, other] = 1.0 if other == entry else 0.0
    begin(span, of)
    for i in range(len(of.rows)):
        enter(span, of, i)
        index += follow(span, dual, of.n)
    return index


@compiled(internal=True)
def candidate_index(span: Span, dual: Dual, n: int, count: int) -> float:
    """Return by how much the `count` forms that the lane's last candidate adds raise log |det|."""
    minor, rise = dual.minor, 0.0
    for k in range(count):
        for form in range(count):
            row, col = span.added[0, form], span.added[1, form]
            minor[form, k] = value_at(dual.functionals, row, col, n, span.firsts[k])
    for k in range(count):
        best = k
        for form in range(k + 1, count):
            best = form if abs(minor[form, k]) > abs(minor[best, k]) else best
        pivot = minor[best, k]
        if pivot == 0.0:
            return np.inf
        rise += math.log(abs(pivot))
        for other in range(k, count):
            minor[k, other], minor[best, other] = minor[best, other], minor[k, other]
        for form in range(k + 1, count):
            factor = minor[form, k] / pivot
            for other in range(k + 1, count):
                minor[form, other] -= factor * minor[k, other]
    return rise


@compiled(internal=True)
def candidate_weight(span: Span, dual: Dual, n: int, lacks: int) -> float:
    """Return the logarithm of the sum of the magnitudes of the functionals with the last candidate; for one lane."""
    tried, vacant, sums = dual.tried, span.kept[0], dual.sums
    for entry in range(len(sums)):
        for place in range(len(sums)):
            tried[entry, place] = dual.functionals[entry, place]
    for word in range(len(vacant)):
        vacant[word] = span.vacant[word]
    for form in range(lacks):
        set_values(tried, dual, span.added[0, form], span.added[1, form], n)
        place, most = 0, -1.0
        for word in range(len(vacant)):
            rest = vacant[word]
            while rest:
                here = 64 * word + np.int64(first_bit(rest))
                rest &= rest - _ONE
                if abs(dual.values[here]) > most:
                    place, most = here, abs(dual.values[here])  # type: ignore[assignment]  # an int
        vacant[place >> 6] ^= _ONE << (np.uint64(place) & _BITS)
        exchange(tried, dual, place)
    sums[:] = 0.0
    for entry in range(len(sums)):
        for place in range(len(sums)):
            sums[place] += abs(tried[entry, place])  # column by column, so that vectors are added
    weight = 0.0
    for place in range(len(sums)):
        weight += sums[place]
    return math.log(weight)
