"""Moves on orbits under a reversal, with the cyclic shift or alone: a slot is an orbit and its reversal.

With the shift a slot represents six terms, or three if every matrix is its own reversal; without it two terms, or one.
Matrices that are equal up to reversal flip; a flip with an orbit that differs from its reversal adds both images to
one that does not, so that it remains its own reversal. If a flip leaves an orbit equal to its reversal, both cancel; if
only one matrix of an orbit is not its own reversal, one orbit with the sum of both images replaces both, unless
`Form.whole`. `flipgraph/orbit_moves.py` has the same moves for a processor, `tests/search/gpu_orbit_reference.py` in
plain Python.
"""

from __future__ import annotations

from types import SimpleNamespace

from .layout import Form
from .primitives import I32, U32, Primitives


def make_orbits(
    prims: Primitives, form: Form, cells: SimpleNamespace, algebra: SimpleNamespace, common: SimpleNamespace
) -> SimpleNamespace:
    """Create `odd`, `weight` (the number of terms of an orbit), and `reduce` (to a smaller orbit where possible)."""
    jit, get, whole, symmetric = prims.jit, cells.get, form.whole, form.symmetric
    one, two = form.weights
    is_zero, same, add, reversed_of = algebra.is_zero, algebra.same, algebra.add, algebra.reversed_of
    drop, toggle_cube, set_value = common.drop, common.toggle_cube, common.set_value

    @jit
    def odd(value):
        """Return 1 for a matrix that is not its own reversal, else 0."""
        return I32(0) if same(value, reversed_of(value)) else I32(1)

    @jit
    def weight(fast, far, lane, own, slot):
        """Return the number of terms that a slot represents."""
        a, b = get(fast, far, lane, own, U32(0), slot), get(fast, far, lane, own, U32(1), slot)
        c = get(fast, far, lane, own, U32(2), slot)
        return I32(one) if I32(odd(a) + odd(b) + odd(c)) == I32(0) else I32(two)

    @jit
    def into_cubes(fast, far, lane, own, slot, value, terms):
        """Replace an orbit of three equal matrices by a cube, and its reversal by another.

        Returns the change of the rank, 0 if there is no room.
        """
        change = toggle_cube(far, own, value)
        if change == I32(0):
            return I32(0)
        if terms == I32(6):
            other = toggle_cube(far, own, reversed_of(value))
            if other == I32(0):
                toggle_cube(far, own, value)
                return I32(0)
            change = I32(change + other)
        drop(fast, far, lane, own, slot)
        return I32(change - terms)

    @jit
    def reduce(fast, far, lane, own, slot, terms):
        """Reduce an orbit that represented `terms` terms before its last change; return the change of the rank."""
        a, b = get(fast, far, lane, own, U32(0), slot), get(fast, far, lane, own, U32(1), slot)
        c = get(fast, far, lane, own, U32(2), slot)
        odds = I32(odd(a) + odd(b) + odd(c))
        if is_zero(a) or is_zero(b) or is_zero(c) or (terms == I32(two) and odds == I32(0)):
            drop(fast, far, lane, own, slot)
            return I32(-terms)
        change = I32(0)
        if whole:
            return change
        if terms == I32(two) and odds == I32(1):
            place = U32(0) if odd(a) == I32(1) else U32(1) if odd(b) == I32(1) else U32(2)
            value = get(fast, far, lane, own, place, slot)
            value, _ = add(value, reversed_of(value), U32(0))
            set_value(fast, far, lane, own, place, slot, value)
            change, terms = I32(-one), I32(one)
            a, b = get(fast, far, lane, own, U32(0), slot), get(fast, far, lane, own, U32(1), slot)
            c = get(fast, far, lane, own, U32(2), slot)
        if symmetric and same(a, b) and same(a, c):
            change = I32(change + into_cubes(fast, far, lane, own, slot, a, terms))
        return change

    return SimpleNamespace(odd=odd, weight=weight, reduce=reduce)


def make_step(
    prims: Primitives,
    form: Form,
    cells: SimpleNamespace,
    algebra: SimpleNamespace,
    common: SimpleNamespace,
    orbits: SimpleNamespace,
) -> object:
    """Create the function that tries a flip of two orbits, the second reversed if its matrix is."""
    jit, get, put, meets, note = prims.jit, cells.get, cells.put, cells.meets, cells.note
    partner, active, print_at, leave = cells.partner, cells.active, cells.print_at, cells.leave
    same, add, reversed_of = algebra.same, algebra.add, algebra.reversed_of
    after, odd, reduce = common.after, orbits.odd, orbits.reduce
    one, two = form.weights
    none, idle, flip = common.events

    @jit
    def step(fast, far, lane, own, halves, accept, draw):
        """Try a flip; return (event, change of the rank, 0)."""
        some, f, i, draw = active(fast, lane, draw)
        if some == I32(0):
            return I32(none), I32(0), I32(0)
        low = print_at(fast, lane, f, i)
        g = after(f)
        e = after(g)
        a, b, c = get(fast, far, lane, own, f, i), get(fast, far, lane, own, g, i), get(fast, far, lane, own, e, i)
        found, q, j, draw = partner(fast, lane, f, i, low, draw)
        if found == I32(0):
            leave(fast, lane, f, i)
            return I32(idle), I32(0), I32(0)
        gq = after(q)
        eq = after(gq)
        aj, bj, cj = (
            get(fast, far, lane, own, q, j),
            get(fast, far, lane, own, gq, j),
            get(fast, far, lane, own, eq, j),
        )
        equal, mirrored = same(a, aj), same(a, reversed_of(aj))
        if not equal and not mirrored:
            return I32(idle), I32(0), I32(0)
        terms = I32(one) if I32(odd(a) + odd(b) + odd(c)) == I32(0) else I32(two)
        others = I32(one) if I32(odd(aj) + odd(bj) + odd(cj)) == I32(0) else I32(two)
        plus_b, plus_c = bj, c
        if mirrored and (not equal or U32(draw >> U32(31)) != U32(0)):
            plus_b, plus_c = reversed_of(bj), reversed_of(c)
        if terms < others:
            plus_b, _ = add(plus_b, reversed_of(plus_b), U32(0))
        if others < terms:
            plus_c, _ = add(plus_c, reversed_of(plus_c), U32(0))
        left, _ = add(b, plus_b, U32(0))
        right, _ = add(cj, plus_c, U32(0))
        new = put(fast, far, lane, own, g, i, left)
        other = put(fast, far, lane, own, eq, j, right)
        met, met_too = meets(fast, lane, g, i, new), meets(fast, lane, eq, j, other)
        note(fast, lane, g, i, met)
        note(fast, lane, eq, j, met_too)
        gone = reduce(fast, far, lane, own, i, terms)
        return I32(flip), I32(gone + reduce(fast, far, lane, own, j, others)), I32(0)

    return step
