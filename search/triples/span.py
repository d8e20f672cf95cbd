"""The space that inner products and their triples span modulo 2, as products come and go; `arrangement` has the plain
twin.

A vector is a word of `terms.ternary_words`, with its lowest nonzero entry positive. The forms r_i c_j of inner products
and triples are in places of a basis of all bilinear forms, or lie in the span of those that are. Stored is the dual
basis: functional s is 1 at the form in place s and 0 at those in other places. So a form leaves by its place becoming
vacant, and what forms add to the space are their values at the vacant places.

`lanes` work together: a lane has every width-th functional. All take the same branches but in `gain`, where a lane has
a candidate of its own. Imports a compiler: imported only to anneal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...schemes_db.factor import IntArray
from ..terms.bits import below, compiled, first_bit, next_draw, popcount
from ..terms.lanes import lane, meet, share, voter, votes, width, xor_of_all
from ..terms.rings import ZERO
from ..terms.ternary_words import HALF_BITS, canonical_word, support_of, total_of, turned
from ..terms.words import Words

BUCKETS = 256
"""Lists of the hash table of inner products."""

GAIN = 15
"""Most forms that are counted of those that an inner product adds to the space."""

CHANGES = 64
"""Last changes of the basis that are remembered."""

NONE = -1
_HALF = np.uint64(HALF_BITS)
_MIX, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(56)
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
    """The space that inner products span, and work space; what is said to be of a lane is not shared.

    Attributes:
        functionals: (p n, words) bit s of row e is the coefficient of functional s at entry e of a form.
        vacant: (words,) the places without a form.
        triples: (3, room) the members of variants 2, 1 and 0 of each triple.
        places: (N + room,) the places of the forms r_i c_i of inner products, then of the forms r_first c_second of
            triples; NONE if a form is in the span of others.
        heads, nexts: (BUCKETS,), (N,) lists of the inner products by their vectors modulo 2, NONE at the end.
        changes: (3, CHANGES) vectors r and c and places of the last forms that took one.
        counts: (2,) numbers of triples and of changes; of a lane.
        values: (words,) the values of the functionals at a form; of a lane.
        kept, firsts, added: (GAIN, words), (GAIN,), (2, GAIN) values of the forms that a candidate adds, reduced by
            those before, the lowest place of each, and its vectors r and c; of a lane.
    """

    functionals: Words
    vacant: Words
    triples: IntArray
    places: IntArray
    heads: IntArray
    nexts: IntArray
    changes: Words
    counts: IntArray
    values: Words
    kept: Words
    firsts: IntArray
    added: Words


def words_of(size: int) -> int:
    """Return the number of words for a bit for each entry of a form."""
    return (size + 63) // 64


def room_for(count: int) -> int:
    """Return the most triples that a span has room for; more are left out. Annealings at 2x12x12 came to `count`."""
    return 3 * count


def work_space(p: int, n: int, count: int) -> Span:
    """Return an empty span of forms p x n for so many inner products."""
    size, words, room = p * n, words_of(p * n), room_for(count)

    def zeros(*shape: int) -> Words:
        return np.zeros(shape, dtype=np.uint64)

    def numbers(*shape: int) -> IntArray:
        return np.zeros(shape, dtype=np.int16)

    return Span(
        zeros(size, words),
        zeros(words),
        numbers(3, room),
        numbers(count + room),
        numbers(BUCKETS),
        numbers(count),
        zeros(3, CHANGES),
        np.zeros(2, dtype=np.int64),
        zeros(words),
        zeros(GAIN, words),
        np.zeros(GAIN, dtype=np.int64),
        zeros(2, GAIN),
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
def evaluate(span: Span, row: np.uint64, col: np.uint64, n: int) -> None:
    """Set `span.values` to the values of the functionals at the form of two supports."""
    values = span.values
    for word in range(len(values)):
        values[word] = ZERO
    while row:
        first = np.int64(first_bit(row)) * n
        row &= row - _ONE
        rest = col
        while rest:
            entry = first + np.int64(first_bit(rest))
            rest &= rest - _ONE
            for word in range(len(values)):
                values[word] ^= span.functionals[entry, word]


@compiled(internal=True)
def take_place(span: Span) -> int:
    """Give the form whose values are set a vacant place; return it, NONE if the form is in the span."""
    values, place = span.values, NONE
    for word in range(len(values)):
        here = values[word] & span.vacant[word]
        if here:
            place = 64 * word + np.int64(first_bit(here))  # type: ignore[assignment]  # compiled, it is one
            break
    if place == NONE:
        return place
    where, bit = place >> 6, np.uint64(place) & _BITS
    meet()
    if lane() == 0:
        span.vacant[where] ^= _ONE << bit
    values[where] ^= _ONE << bit
    for entry in range(lane(), len(span.functionals), width()):
        mask = ZERO - ((span.functionals[entry, where] >> bit) & _ONE)
        for word in range(len(values)):
            span.functionals[entry, word] ^= values[word] & mask
    meet()
    return place


@compiled(internal=True)
def add_form(span: Span, of: InnerProducts, form: int, first: int, second: int) -> None:
    """Put r_first c_second, which is number `form`, in the space."""
    row, col = of.rows[first], of.cols[second]
    evaluate(span, support_of(row), share(support_of(col)), of.n)
    for word in range(len(span.values)):
        span.values[word] = xor_of_all(span.values[word])
    place = take_place(span)
    if lane() == 0:
        span.places[form] = place
        if place != NONE:
            change = span.counts[1] % CHANGES
            span.changes[0, change], span.changes[1, change], span.changes[2, change] = row, col, np.uint64(place)
    if place != NONE:
        span.counts[1] += 1
    meet()


@compiled(internal=True)
def vacate(span: Span, form: int) -> None:
    """Take a form out of its place."""
    place = span.places[form]
    if place != NONE and lane() == 0:
        span.vacant[place >> 6] ^= _ONE << (np.uint64(place) & _BITS)
    meet()


@compiled(internal=True)
def bucket_of(row: np.uint64, col: np.uint64) -> int:
    """Return the list of inner products with these supports."""
    return np.int64((((row << _HALF) | col) * _MIX) >> _SHIFT)  # type: ignore[return-value]  # compiled, it is one


@compiled(internal=True)
def find(span: Span, of: InnerProducts, row: np.uint64, col: np.uint64, variant: int) -> int:
    """Return the number of an inner product in the space, NONE if it is not there."""
    i = span.heads[bucket_of(support_of(row), support_of(col))]
    while i != NONE and (of.variants[i] != variant or of.rows[i] != row or of.cols[i] != col):
        i = span.nexts[i]
    return np.int64(i)  # type: ignore[return-value]  # compiled, it is one


@compiled(internal=True)
def find_third(span: Span, of: InnerProducts, row: np.uint64, col: np.uint64, a: int, variant: int) -> int:
    """Return the number of an inner product that is a triple with (row, col) and number `a`, NONE if there is none."""
    r, c = support_of(row) ^ support_of(of.rows[a]), support_of(col) ^ support_of(of.cols[a])
    if not r or not c:
        return NONE
    i = span.heads[bucket_of(r, c)]
    while i != NONE:
        if of.variants[i] == variant and support_of(of.rows[i]) == r and support_of(of.cols[i]) == c:
            third = of.rows[i]
            by_row = total(row, of.rows[a], False) == third or total(row, of.rows[a], True) == third
            third = of.cols[i]
            if by_row and (total(col, of.cols[a], False) == third or total(col, of.cols[a], True) == third):
                return np.int64(i)  # type: ignore[return-value]  # compiled, it is one
        i = span.nexts[i]
    return NONE


@compiled(internal=True)
def link(span: Span, of: InnerProducts, i: int) -> None:
    """Add an inner product to its list."""
    bucket = bucket_of(support_of(of.rows[i]), support_of(of.cols[i]))
    if lane() == 0:
        span.nexts[i], span.heads[bucket] = span.heads[bucket], i
    meet()


@compiled(internal=True)
def unlink(span: Span, of: InnerProducts, i: int) -> None:
    """Remove an inner product from its list."""
    bucket = bucket_of(support_of(of.rows[i]), support_of(of.cols[i]))
    if lane() == 0:
        if span.heads[bucket] == i:
            span.heads[bucket] = span.nexts[i]
        else:
            before = span.heads[bucket]
            while span.nexts[before] != i:
                before = span.nexts[before]
            span.nexts[before] = span.nexts[i]
    meet()


@compiled(internal=True)
def add_triple(span: Span, of: InnerProducts, i: int, j: int, k: int) -> None:
    """Add the triple of three inner products, in any order."""
    t = span.counts[0]
    if t == span.triples.shape[1]:
        return
    first = i if of.variants[i] == 2 else j if of.variants[j] == 2 else k
    second = i if of.variants[i] == 1 else j if of.variants[j] == 1 else k
    if lane() == 0:
        span.triples[0, t], span.triples[1, t], span.triples[2, t] = first, second, i + j + k - first - second
    span.counts[0] = t + 1
    add_form(span, of, len(of.rows) + t, first, second)


@compiled(internal=True)
def enter(span: Span, of: InnerProducts, i: int) -> None:
    """Put an inner product and its triples in the space."""
    link(span, of, i)
    add_form(span, of, i, i, i)
    second, third = (of.variants[i] + 1) % 3, (of.variants[i] + 2) % 3
    for start in range(0, len(of.rows), width()):
        a, found = start + lane(), NONE
        if a < len(of.rows) and of.variants[a] == second and span.places[a] >= NONE:
            found = find_third(span, of, of.rows[i], of.cols[i], a, third)
        for k in range(votes(found != NONE)):
            a = start + voter(found != NONE, k)
            add_triple(span, of, i, a, find_third(span, of, of.rows[i], of.cols[i], a, third))


@compiled(internal=True)
def leave(span: Span, of: InnerProducts, i: int) -> None:
    """Take an inner product and its triples out of the space; forms that depended on theirs take their places."""
    count = len(of.rows)
    unlink(span, of, i)
    vacate(span, i)
    for start in range((span.counts[0] - 1) // width() * width(), -1, -width()):
        t = start + lane()
        hit = t < span.counts[0] and (span.triples[0, t] == i or span.triples[1, t] == i or span.triples[2, t] == i)
        for k in range(votes(hit) - 1, -1, -1):
            t, last = start + voter(hit, k), span.counts[0] - 1
            vacate(span, count + t)
            if lane() == 0:
                for member in range(3):
                    span.triples[member, t] = span.triples[member, last]
                span.places[count + t] = span.places[count + last]
            span.counts[0] = last
            meet()
    if lane() == 0:
        span.places[i] = NONE - 1  # it is not in the space
    meet()
    for start in range(0, count + span.counts[0], width()):
        form = start + lane()
        hit = form < count + span.counts[0] and span.places[form] == NONE
        for k in range(votes(hit)):
            form = start + voter(hit, k)
            first = form if form < count else np.int64(span.triples[0, form - count])
            second = form if form < count else np.int64(span.triples[1, form - count])
            add_form(span, of, form, first, second)


@compiled
def lacking(span: Span) -> int:
    """Return how many dimensions the space lacks."""
    vacant = 0
    for word in range(len(span.vacant)):
        vacant += np.int64(popcount(span.vacant[word]))  # type: ignore[assignment]  # as above
    return vacant


@compiled(internal=True)
def begin(span: Span, of: InnerProducts) -> None:
    """Empty the space."""
    size, count = len(span.functionals), len(of.rows)
    span.counts[0] = span.counts[1] = 0
    for entry in range(lane(), size, width()):
        for word in range(len(span.vacant)):
            span.functionals[entry, word] = ZERO
        span.functionals[entry, entry >> 6] = _ONE << (np.uint64(entry) & _BITS)
    for bucket in range(lane(), BUCKETS, width()):
        span.heads[bucket] = NONE
    for i in range(lane(), count, width()):
        span.places[i] = NONE - 1
    if lane() == 0:
        for word in range(len(span.vacant)):
            rest = size - 64 * word
            span.vacant[word] = ~ZERO if rest >= 64 else (_ONE << np.uint64(rest)) - _ONE
    meet()


@compiled(internal=True)
def gained(span: Span, row: np.uint64, col: np.uint64, n: int, count: int) -> int:
    """Return how many forms a candidate adds with the form of two vectors, if it was `count` without."""
    values, kept = span.values, span.kept
    if count == GAIN:
        return count
    evaluate(span, support_of(row), support_of(col), n)
    for word in range(len(values)):
        values[word] &= span.vacant[word]
    for k in range(count):
        place = span.firsts[k]
        if (values[place >> 6] >> (np.uint64(place) & _BITS)) & _ONE:
            for word in range(len(values)):
                values[word] ^= kept[k, word]
    for word in range(len(values)):
        if values[word]:
            span.firsts[count] = 64 * word + np.int64(first_bit(values[word]))
            span.added[0, count], span.added[1, count] = row, col
            for other in range(len(values)):
                kept[count, other] = values[other]
            return count + 1
    return count


@compiled
def gain(span: Span, of: InnerProducts, row: np.uint64, col: np.uint64, variant: int) -> int:
    """Return by how much the dimension rises with an inner product and its triples, at most GAIN."""
    count = gained(span, row, col, of.n, 0)
    second, third = (variant + 1) % 3, (variant + 2) % 3
    for a in range(len(of.rows)):
        if of.variants[a] == second and span.places[a] >= NONE:
            b = find_third(span, of, row, col, a, third)
            if b != NONE:
                first = row if variant == 2 else of.rows[a] if variant == 1 else of.rows[b]
                last = col if variant == 1 else of.cols[b] if variant == 2 else of.cols[a]
                count = gained(span, first, last, of.n, count)
    return count


@compiled
def randomize(rng: Words, of: InnerProducts) -> None:
    """Set random inner products."""
    for i in range(len(of.rows)):
        of.rows[i] = random_vector(rng, of.p)
        of.cols[i] = random_vector(rng, of.n)
        of.variants[i] = below(rng, 3)
