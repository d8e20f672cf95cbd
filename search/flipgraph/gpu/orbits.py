"""Orbits under a reversal, with the cyclic shift or alone: a slot is an orbit and its reversal.

With the shift a slot represents six terms, or three if every matrix is its own reversal; without it two terms, or one.
Matrices that are equal up to reversal flip. If a flip leaves an orbit equal to its reversal, both cancel; if
only one matrix of an orbit is not its own reversal, one orbit with the sum of both images replaces both, unless
`Form.whole`. `flipgraph/orbit_flips.py` has the same moves for a processor, `tests/search/gpu_reference.py` in
plain Python.
"""

from __future__ import annotations

from .layout import MAX_CUBES
from .primitives import I32, U32, U64, KernelParts


def make_orbits(parts: KernelParts) -> None:
    """Add `terms_of` and `weight` (the terms of an orbit), `reduce` (to a smaller orbit if possible), `into_cubes`.

    The cubes of a symmetric walker are in global memory.
    """
    jit, form, get, factors = parts.jit, parts.form, parts.get, parts.factors
    whole, symmetric, paired = form.whole, form.symmetric, form.half > 0
    one, two = form.weights
    is_zero, same, add, reversed_of = parts.is_zero, parts.same, parts.add, parts.reversed_of
    drop, set_value, cubes_at = parts.drop, parts.set_value, U64(form.cubes)

    @jit
    def odd(value):
        """Return 1 for a matrix that is not its own reversal, else 0."""
        return I32(0) if same(value, reversed_of(value)) else I32(1)

    @jit
    def terms_of(a, b, c):
        """Return the number of terms that an orbit of these matrices represents."""
        return I32(one) if I32(odd(a) + odd(b) + odd(c)) == I32(0) else I32(two)

    @jit
    def weight(fast, far, lane, own, slot):
        """Return the number of terms that a slot represents."""
        if not paired:
            return I32(one)
        a, b, c = factors(fast, far, lane, own, slot, U32(0), U32(1), U32(2))
        return terms_of(a, b, c)

    @jit
    def toggle_cube(far, own, value):
        """Add a cube modulo 2; return the change of the rank, or 0 if there is no room."""
        low, high = U32(U64(value) & U64(0xFFFFFFFF)), U32(U64(value) >> U64(32))
        free = I32(-1)
        for n in range(MAX_CUBES):
            at = own + cubes_at + U64(2 * n)
            if far[at] == low and far[at + U64(1)] == high:
                far[at] = U32(0)
                far[at + U64(1)] = U32(0)
                return I32(-1)
            if free < I32(0) and far[at] == U32(0) and far[at + U64(1)] == U32(0):
                free = I32(n)
        if free < I32(0):
            return I32(0)
        at = own + cubes_at + U64(2) * U64(free)
        far[at] = low
        far[at + U64(1)] = high
        return I32(1)

    @jit
    def into_cubes(fast, far, lane, own, slot, value, terms):
        """Replace an orbit of three equal matrices by a cube, equal modulo 2, and its reversal, if any, by another.

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
        a, b, c = factors(fast, far, lane, own, slot, U32(0), U32(1), U32(2))
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
            a, b, c = factors(fast, far, lane, own, slot, U32(0), U32(1), U32(2))
        if symmetric and same(a, b) and same(a, c):
            change = I32(change + into_cubes(fast, far, lane, own, slot, a, terms))
        return change
