"""The dimension that inner products and their triples span, compiled; `arrangement` has the plain twin.

A vector is a word of `terms.ternary_words`, with its lowest nonzero entry positive. A bilinear form modulo 2 has bit
i n + j for r_i c_j, in as many words as it takes. Imports a compiler: imported only to anneal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...schemes_db.factor import IntArray
from ..terms.bits import below, compiled, first_bit, next_draw
from ..terms.rings import ZERO
from ..terms.ternary_words import HALF_BITS, canonical_word, support_of, total_of, turned
from ..terms.words import Words

_TABLE = 1024
"""Places of the hash table of inner products: four times the most of them."""

_EMPTY = -1
_HALF, _LOW = np.uint64(HALF_BITS), np.uint64((1 << HALF_BITS) - 1)
_MIX, _SHIFT, _PLACE = np.uint64(0x9E3779B97F4A7C15), np.uint64(54), np.uint64(_TABLE - 1)
_ONE, _WORD, _BITS = np.uint64(1), np.uint64(6), np.uint64(63)
_PLUS, _MINUS = np.uint64(1), np.uint64(2)


class InnerProducts(NamedTuple):
    """Inner products of an arrangement.

    Attributes:
        rows, cols: (N,) the vectors r and c.
        variants: (N,) 0, 1 or 2.
        p, n: lengths of r and c, 16 at most.
    """

    rows: Words
    cols: Words
    variants: IntArray
    p: int
    n: int


class Span(NamedTuple):
    """Work space: a space of bilinear forms in echelon form, and a hash table of the inner products in it.

    Attributes:
        pivots: (p n, words) the form whose lowest bit is that of the row.
        present: (p n,) whether there is one.
        form: (words,) the form that is being reduced.
        fresh: (p n,) lowest bits of forms that are to be removed again.
        firsts, seconds: (p n,) the forms r_firsts c_seconds that `span_without` found to be independent, in order.
        keys: (TABLE,) supports of r and c of an inner product.
        places: (TABLE,) its number, -1 where there is none.
    """

    pivots: Words
    present: npt.NDArray[np.bool_]
    form: Words
    fresh: IntArray
    firsts: IntArray
    seconds: IntArray
    keys: Words
    places: IntArray


def work_space(p: int, n: int) -> Span:
    """Return an empty span of forms p x n."""
    size = p * n
    words = (size + 63) // 64
    return Span(
        pivots=np.zeros((size, words), dtype=np.uint64),
        present=np.zeros(size, dtype=np.bool_),
        form=np.zeros(words, dtype=np.uint64),
        fresh=np.zeros(size, dtype=np.int64),
        firsts=np.zeros(size, dtype=np.int64),
        seconds=np.zeros(size, dtype=np.int64),
        keys=np.zeros(_TABLE, dtype=np.uint64),
        places=np.zeros(_TABLE, dtype=np.int64),
    )


@compiled
def total(x: np.uint64, y: np.uint64, negate: bool) -> np.uint64:
    """Return x + y, or x - y with `negate`, up to sign; 0 where it is zero or has an entry beyond -1, 0, 1."""
    if negate:
        y = turned(y, _HALF)
    if x & y:
        return ZERO
    return canonical_word(total_of(x, y))


@compiled(internal=True)
def random_vector(rng: Words, length: int) -> np.uint64:
    """Return a random nonzero vector: half of the entries are zero on average."""
    while True:
        word = ZERO
        for i in range(length):
            rng[0] = next_draw(rng[0])
            entry = rng[0] >> np.uint64(62)
            if entry == _PLUS:
                word |= _ONE << np.uint64(i)
            elif entry == _MINUS:
                word |= _ONE << (np.uint64(i) + _HALF)
        if word:
            return canonical_word(word)


@compiled(internal=True)
def set_form(span: Span, row: np.uint64, col: np.uint64, n: int) -> None:
    """Set `span.form` to r_i c_j modulo 2."""
    form = span.form
    form[:] = ZERO
    rest, bits = support_of(row), support_of(col)
    while rest:
        place = first_bit(rest) * np.uint64(n)
        rest &= rest - _ONE
        word, offset = place >> _WORD, place & _BITS
        form[word] |= bits << offset
        if offset + np.uint64(n) > np.uint64(64):
            form[word + _ONE] |= bits >> (np.uint64(64) - offset)


@compiled(internal=True)
def insert(span: Span) -> int:
    """Add `span.form` to the space; return its lowest bit after reduction, -1 if it was in the space already."""
    form, pivots = span.form, span.pivots
    for word in range(len(form)):
        while form[word]:
            place = 64 * word + np.int64(first_bit(form[word]))
            if not span.present[place]:
                span.present[place] = True
                for other in range(len(form)):
                    pivots[place, other] = form[other]
                return place  # type: ignore[return-value]  # compiled, it is one
            for other in range(word, len(form)):
                form[other] ^= pivots[place, other]
    return -1


@compiled(internal=True)
def hashed(key: np.uint64) -> np.uint64:
    """Return the first place for a key in the hash table."""
    return (key * _MIX) >> _SHIFT


@compiled(internal=True)
def key_of(row: np.uint64, col: np.uint64) -> np.uint64:
    """Return the key of an inner product: its vectors modulo 2."""
    return (support_of(row) << _HALF) | support_of(col)


@compiled(internal=True)
def find(span: Span, of: InnerProducts, row: np.uint64, col: np.uint64, variant: int) -> int:
    """Return the number of an inner product in the space, -1 if it is not there."""
    key = key_of(row, col)
    place = hashed(key)
    while span.places[place] != _EMPTY:
        i = span.places[place]
        if span.keys[place] == key and of.variants[i] == variant and of.rows[i] == row and of.cols[i] == col:
            return i
        place = (place + _ONE) & _PLACE
    return -1


@compiled(internal=True)
def find_third(span: Span, of: InnerProducts, row: np.uint64, col: np.uint64, a: int, variant: int) -> int:
    """Return the number of an inner product that is a triple with (row, col) and number `a`, -1 if there is none."""
    key = key_of(row, col) ^ key_of(of.rows[a], of.cols[a])
    if not key & _LOW or not key >> _HALF:
        return -1
    place = hashed(key)
    while span.places[place] != _EMPTY:
        i = span.places[place]
        if span.keys[place] == key and of.variants[i] == variant:
            r, c = of.rows[i], of.cols[i]
            by_row = total(row, of.rows[a], False) == r or total(row, of.rows[a], True) == r
            if by_row and (total(col, of.cols[a], False) == c or total(col, of.cols[a], True) == c):
                return i
        place = (place + _ONE) & _PLACE
    return -1


@compiled(internal=True)
def add_form(span: Span, of: InnerProducts, first: int, second: int, dimension: int) -> int:
    """Add r_first c_second to a space; return its dimension then."""
    set_form(span, of.rows[first], of.cols[second], of.n)
    if insert(span) < 0:
        return dimension
    span.firsts[dimension], span.seconds[dimension] = first, second
    return dimension + 1


@compiled
def span_without(span: Span, of: InnerProducts, left_out: int) -> int:
    """Set the space to what all inner products but one (-1: all) and their triples span; return its dimension."""
    span.present[:] = False
    span.places[:] = _EMPTY
    dimension = 0
    for i in range(len(of.rows)):
        if i != left_out:
            place = hashed(key_of(of.rows[i], of.cols[i]))
            while span.places[place] != _EMPTY:
                place = (place + _ONE) & _PLACE
            span.keys[place], span.places[place] = key_of(of.rows[i], of.cols[i]), i
            dimension = add_form(span, of, i, i, dimension)
    for i in range(len(of.rows)):
        if i != left_out and of.variants[i] == 2:
            for j in range(len(of.rows)):
                if j != left_out and of.variants[j] == 1 and find_third(span, of, of.rows[i], of.cols[i], j, 0) >= 0:
                    dimension = add_form(span, of, i, j, dimension)
    return dimension


@compiled(internal=True)
def insert_fresh(span: Span, count: int) -> int:
    """Add `span.form` to the space, to be removed again after `count` others; return their number then."""
    place = insert(span)
    if place < 0:
        return count
    span.fresh[count] = place
    return count + 1


@compiled
def gain(span: Span, of: InnerProducts, left_out: int, row: np.uint64, col: np.uint64, variant: int) -> int:
    """Return by how much the dimension rises with an inner product for the one left out; the space stays as it is.

    Modulo 2 and the three inner products of a triple, (r_a A)(B c_b) is the same form for any two of them.
    """
    set_form(span, row, col, of.n)
    count = insert_fresh(span, 0)
    second, third = (variant + 1) % 3, (variant + 2) % 3
    for a in range(len(of.rows)):
        if a != left_out and of.variants[a] == second:
            b = find_third(span, of, row, col, a, third)
            if b >= 0:
                set_form(span, of.rows[a], of.cols[b], of.n)
                count = insert_fresh(span, count)
    for i in range(count):
        span.present[span.fresh[i]] = False
    return count


@compiled
def randomize(rng: Words, of: InnerProducts) -> None:
    """Set random inner products."""
    for i in range(len(of.rows)):
        of.rows[i] = random_vector(rng, of.p)
        of.cols[i] = random_vector(rng, of.n)
        of.variants[i] = below(rng, 3)
