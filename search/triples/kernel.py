"""Compiled annealing of arrangements; `arrangement` has the plain twin of what it counts.

A vector is a word: the low half has the bits of its entries 1, the high half those of its entries -1, and the lowest
nonzero entry is positive. Modulo 2 the high half is empty. Inner products of one arrangement are in arrays `rows`,
`cols` and `variants`. Imports a compiler: imported only to anneal.
"""

from __future__ import annotations

import numpy as np

from ...jit import njit

ROW_HALF, COL_HALF = np.uint64(8), np.uint64(16)
"""Bits of half a word of r and of c: the most rows of A and columns of B."""

TABLE = 512
"""Places of the hash table of inner products: more than twice the most of them."""

_NONE = np.uint64(0xFFFFFFFFFFFFFFFF)
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_MIX, _SCALE = np.uint64(0x9E3779B97F4A7C15), 1.0 / (1 << 53)
_PLACE = np.uint64(TABLE - 1)
_COOLING = 256


@njit
def draw(state):
    """Advance a xorshift generator and return 64 random bits."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return x * np.uint64(0x2545F4914F6CDD1D)


@njit
def below(state, bound):
    """Return a random integer from 0 to bound - 1."""
    return np.int64(((draw(state) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@njit
def added(x, y, half, negate, modulo_2):
    """Return x + y, or x - y with `negate`, up to sign; _NONE where an entry is beyond -1, 0, 1, or all are 0."""
    if modulo_2:
        return x ^ y if x != y else _NONE
    mask = (_ONE << half) - _ONE
    plus, minus, more, less = x & mask, x >> half, y & mask, y >> half
    if negate:
        more, less = less, more
    if (plus & more) | (minus & less):
        return _NONE
    up, down = (plus | more) & ~(minus | less), (minus | less) & ~(plus | more)
    if not up | down:
        return _NONE
    return first_positive(up, down, half)


@njit
def first_positive(up, down, half):
    """Return the word of a vector with these entries 1 and -1, negated if its lowest nonzero entry is negative."""
    both = up | down
    if down & both & (~both + _ONE):
        return down | (up << half)
    return up | (down << half)


@njit
def random_vector(state, length, half, modulo_2):
    """Return a random nonzero vector."""
    while True:
        up, down = _ZERO, _ZERO
        for i in range(length):
            entry = draw(state) >> np.uint64(62)
            if entry == _ONE or (modulo_2 and entry == np.uint64(2)):
                up |= _ONE << np.uint64(i)
            elif entry == np.uint64(2):
                down |= _ONE << np.uint64(i)
        if up | down:
            return first_positive(up, down, half)


@njit
def outer(row, col, p, n):
    """Return the bits of the bilinear form r_i c_j modulo 2, bit i n + j."""
    r = (row | (row >> ROW_HALF)) & ((_ONE << ROW_HALF) - _ONE)
    c = (col | (col >> COL_HALF)) & ((_ONE << COL_HALF) - _ONE)
    word = _ZERO
    for i in range(p):
        if (r >> np.uint64(i)) & _ONE:
            word |= c << np.uint64(i * n)
    return word


@njit
def insert(pivots, word):
    """Reduce a word by the rows of `pivots`, one for each leading bit, and store what is left; return 1 if any is."""
    place = 63
    while word:
        while not (word >> np.uint64(place)) & _ONE:
            place -= 1
        if not pivots[place]:
            pivots[place] = word
            return 1
        word ^= pivots[place]
    return 0


@njit
def place_of(table, key):
    """Return the place of a key in the hash table, or the free place where it belongs."""
    place = (key * _MIX) >> np.uint64(40)
    while table[place & _PLACE] != _NONE and table[place & _PLACE] != key:
        place += _ONE
    return place & _PLACE


@njit
def dimension(rows, cols, variants, p, n, modulo_2, table, pivots):
    """Return the dimension modulo 2 that inner products and their triples span, of p n; see `Arrangement.forms`."""
    pivots[:] = 0
    table[:] = _NONE
    found = 0
    for i in range(len(rows)):
        found += insert(pivots, outer(rows[i], cols[i], p, n))
        if variants[i] == 0:
            key = (rows[i] << np.uint64(32)) | cols[i]
            table[place_of(table, key)] = key
    for i in range(len(rows)):
        if variants[i] != 2:
            continue
        for j in range(len(rows)):
            if variants[j] != 1:
                continue
            triple = False
            for negate in range(1 if modulo_2 else 2):
                row = added(rows[i], rows[j], ROW_HALF, negate == 1, modulo_2)
                if row == _NONE or triple:
                    continue
                for other in range(1 if modulo_2 else 2):
                    col = added(cols[i], cols[j], COL_HALF, other == 1, modulo_2)
                    if col != _NONE and not triple:
                        key = (row << np.uint64(32)) | col
                        triple = table[place_of(table, key)] == key
            if triple:
                found += insert(pivots, outer(rows[i], cols[j], p, n))
                if found == p * n:
                    return found
    return found


@njit
def randomize(state, rows, cols, variants, p, n, modulo_2):
    """Set random inner products."""
    for i in range(len(rows)):
        rows[i] = random_vector(state, p, ROW_HALF, modulo_2)
        cols[i] = random_vector(state, n, COL_HALF, modulo_2)
        variants[i] = below(state, 3)


@njit
def anneal(state, rows, cols, variants, p, n, modulo_2, first, steps, length, hot, cold, table, pivots):
    """Anneal for `steps` steps from step `first` of a schedule of `length`; stop where everything is spanned.

    A step replaces an inner product: mostly by the third of a triple with two others, else by a random one or one with
    another variant, r or c. A loss of dimension d is accepted with probability exp(-d / T), T falling from `hot` to
    `cold`. Returns the steps made and the dimension.
    """
    count = len(rows)
    now = dimension(rows, cols, variants, p, n, modulo_2, table, pivots)
    temperature = hot
    for step in range(steps):
        if now == p * n:
            return step, now
        if step % _COOLING == 0:
            temperature = hot * (cold / hot) ** ((first + step) / length)
        i = below(state, count)
        row, col, variant = rows[i], cols[i], variants[i]
        kind = below(state, 10)
        if kind < 7:
            a, b = below(state, count), below(state, count)
            if a == i or b == i or variants[a] == variants[b]:
                continue
            row = added(rows[a], rows[b], ROW_HALF, below(state, 2) == 1, modulo_2)
            col = added(cols[a], cols[b], COL_HALF, below(state, 2) == 1, modulo_2)
            variant = 3 - variants[a] - variants[b]
        elif kind == 7:
            variant = below(state, 3)
        elif kind == 8:
            a = below(state, count)
            if below(state, 2):
                row = added(row, rows[a], ROW_HALF, below(state, 2) == 1, modulo_2)
            else:
                col = added(col, cols[a], COL_HALF, below(state, 2) == 1, modulo_2)
        else:
            row = random_vector(state, p, ROW_HALF, modulo_2)
            col = random_vector(state, n, COL_HALF, modulo_2)
            variant = below(state, 3)
        if row == _NONE or col == _NONE:
            continue
        repeated = False
        for a in range(count):
            repeated |= rows[a] == row and cols[a] == col and variants[a] == variant
        if repeated:
            continue
        old_row, old_col, old_variant = rows[i], cols[i], variants[i]
        rows[i], cols[i], variants[i] = row, col, variant
        then = dimension(rows, cols, variants, p, n, modulo_2, table, pivots)
        if then >= now or (draw(state) >> np.uint64(11)) * _SCALE < np.exp((then - now) / temperature):
            now = then
        else:
            rows[i], cols[i], variants[i] = old_row, old_col, old_variant
    return steps, now
