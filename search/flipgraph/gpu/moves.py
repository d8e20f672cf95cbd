"""Moves of a walker: flip and reduce in one step, plus when it stagnates.

Sources: Kauers and Moosbauer (arXiv 2212.01175) for flips and reductions; Arai, Ichikawa and Hukushima
(arXiv 2312.16960) for the plus transition; Moosbauer and Poole (arXiv 2502.04514) for orbits under
the cyclic shift, where a flip is of two orbits, shifted so that the equal factors come first.
`tests/search/gpu_reference.py` is the equivalent in plain Python.
"""

from __future__ import annotations

from .orbits import make_orbits
from .primitives import I32, U32, U64, KernelParts

NONE, IDLE, FLIP = 0, 1, 2
"""Events of a step: no active slot in the drawn factor, no change, a flip."""

PLUS_TRIES = 32
"""Maximum number of pairs of slots that a plus draws."""

_MULTIPLIER = U64(6364136223846793005)


def make_terms(parts: KernelParts) -> None:
    """Add functions shared by all moves: draws, slots and their values."""
    jit, room, width = parts.jit, 32 * parts.form.masks, U32(parts.form.width)
    get, put, meets, note, leave = parts.get, parts.put, parts.meets, parts.note, parts.leave
    sign_of, turn_sign = parts.sign_of, parts.turn_sign
    is_zero, turn, zero = parts.is_zero, parts.turn, parts.zero

    @jit
    def next_draw(rng, walker):
        """Return the next state of a linear congruential generator with the walker's own increment."""
        return U64(rng * _MULTIPLIER + (U64(walker) * U64(2) + U64(1)))

    @jit
    def after(f):
        return U32(0) if f == U32(2) else U32(f + U32(1))

    @jit
    def factors(fast, far, lane, own, slot, f, g, e):
        """Return three factors of a slot."""
        a, b = get(fast, far, lane, own, f, slot), get(fast, far, lane, own, g, slot)
        return a, b, get(fast, far, lane, own, e, slot)

    @jit
    def drop(fast, far, lane, own, slot):
        for n in range(3):
            put(fast, far, lane, own, U32(n), slot, zero())
            leave(fast, lane, U32(n), slot)
        turn_sign(fast, lane, slot, sign_of(fast, lane, slot))

    @jit
    def is_slot(slot):
        return U32(U32(slot >> U32(5)) << U32(4)) + (slot & U32(15)) < width

    @jit
    def is_live(fast, far, lane, own, slot):
        return is_slot(slot) and not is_zero(get(fast, far, lane, own, U32(0), slot))

    @jit
    def set_value(fast, far, lane, own, f, slot, value):
        """Store a value that need not be canonical, and update active sets; return whether it was negated."""
        value, turned = turn(value)
        note(fast, lane, f, slot, meets(fast, lane, f, slot, put(fast, far, lane, own, f, slot, value)))
        return turned

    @jit
    def free_slot(fast, far, lane, own):
        """Return the lowest free slot, or `room` if there is none."""
        slot = U32(room)
        for n in range(room):
            if slot == U32(room) and is_slot(U32(n)) and is_zero(get(fast, far, lane, own, U32(0), U32(n))):
                slot = U32(n)
        return slot


def make_step(parts: KernelParts) -> None:
    """Add the function that tries a flip of two terms or of two orbits, the second reversed if its matrix is."""
    form, biased = parts.form, parts.kind_of_cost != ""
    symmetric, paired, hashed = form.symmetric, form.half > 0, form.planes > 1
    unit = I32(3 if form.symmetric else 1)
    get, put, meets, note, leave = parts.get, parts.put, parts.meets, parts.note, parts.leave
    sign_of, turn_sign, print_at = parts.sign_of, parts.turn_sign, parts.print_at
    partner, active, cost = parts.partner, parts.active, parts.cost
    is_zero, same, add, turn = parts.is_zero, parts.same, parts.add, parts.turn
    reversed_of, after, drop = parts.reversed_of, parts.after, parts.drop
    terms_of, reduce, into_cubes = parts.terms_of, parts.reduce, parts.into_cubes

    @parts.jit
    def step(fast, far, lane, own, halves, accept, draw):
        """Try a flip; return (event, change of the rank, change of the cost).

        a b c + s a b' c' = a (b + t b') c + s a b' (c' - s t c). A stale bit in an active set is cleared and
        ends the step: so no flip needs a scan for the values that it replaces.
        """
        some, f, i, draw = active(fast, lane, draw)
        if some == I32(0):
            return I32(NONE), I32(0), I32(0)
        low = print_at(fast, lane, f, i)
        # Load before the scan, so that loads from global memory overlap with it.
        g = after(f)
        e = after(g)
        a, b, c = get(fast, far, lane, own, f, i), get(fast, far, lane, own, g, i), get(fast, far, lane, own, e, i)
        found, q, j, draw = partner(fast, lane, f, i, low, draw)
        if found == I32(0):
            leave(fast, lane, f, i)
            return I32(IDLE), I32(0), I32(0)
        gq = after(q)
        eq = after(gq)
        bj, cj = get(fast, far, lane, own, gq, j), get(fast, far, lane, own, eq, j)
        if hashed and not paired and not same(a, get(fast, far, lane, own, q, j)):
            return I32(IDLE), I32(0), I32(0)
        more, less, size, other_size = bj, c, unit, unit
        if paired:
            aj = get(fast, far, lane, own, q, j)
            equal, mirrored = same(a, aj), same(a, reversed_of(aj))
            if not equal and not mirrored:
                return I32(IDLE), I32(0), I32(0)
            size, other_size = terms_of(a, b, c), terms_of(aj, bj, cj)
            if mirrored and (not equal or U32(draw >> U32(31)) != U32(0)):
                more, less = reversed_of(bj), reversed_of(c)
            # An orbit that is its own reversal adds both images of a matrix of one that is not.
            if size < other_size:
                more, _ = add(more, reversed_of(more), U32(0))
            if other_size < size:
                less, _ = add(less, reversed_of(less), U32(0))
        minus = U32(draw >> U32(31))
        against = U32(U32(1) ^ sign_of(fast, lane, i) ^ sign_of(fast, lane, j))
        left, fits = add(b, more, minus)
        right, fits_too = add(cj, less, U32(minus ^ against))
        if not (fits and fits_too):
            minus = U32(minus ^ U32(1))
            left, fits = add(b, more, minus)
            right, fits_too = add(cj, less, U32(minus ^ against))
            if not (fits and fits_too):
                return I32(IDLE), I32(0), I32(0)
        rise = I32(0)
        if biased:
            rise = I32(-cost(halves, f, a, g, b, e, c) - cost(halves, f, a, g, bj, e, cj))
            if not is_zero(left):
                rise = I32(rise + cost(halves, f, a, g, left, e, c))
            if not is_zero(right):
                rise = I32(rise + cost(halves, f, a, g, bj, e, right))
            if rise > I32(0) and U32(U32(draw >> U32(15)) & U32(0xFFFF)) >= accept[min(rise, I32(15))]:
                return I32(IDLE), I32(0), I32(0)
        left, turned = turn(left)
        turn_sign(fast, lane, i, turned)
        right, turned = turn(right)
        turn_sign(fast, lane, j, turned)
        new, other = put(fast, far, lane, own, g, i, left), put(fast, far, lane, own, eq, j, right)
        gone = I32(0)
        if not paired:
            if is_zero(left):
                drop(fast, far, lane, own, i)
                gone = I32(gone - unit)
            if is_zero(right):
                drop(fast, far, lane, own, j)
                gone = I32(gone - unit)
        # Both scans before either update: a load never waits for a store of the other.
        met, others = meets(fast, lane, g, i, new), meets(fast, lane, eq, j, other)
        note(fast, lane, g, i, met)
        note(fast, lane, eq, j, others)
        if paired:
            gone = reduce(fast, far, lane, own, i, size)
            gone = I32(gone + reduce(fast, far, lane, own, j, other_size))
        elif symmetric and gone == I32(0):
            if same(a, left) and same(a, c):
                gone = I32(gone + into_cubes(fast, far, lane, own, i, a, unit))
            if same(a, bj) and same(a, right):
                gone = I32(gone + into_cubes(fast, far, lane, own, j, a, unit))
        return I32(FLIP), gone, rise


def make_plus(parts: KernelParts) -> None:
    """Add the plus transition, which splits two terms or orbits, of equal size, into three."""
    symmetric, room, paired = parts.form.symmetric, 32 * parts.form.masks, parts.form.half > 0
    factors, sign_of, turn_sign = parts.factors, parts.sign_of, parts.turn_sign
    same, add, next_draw, after = parts.same, parts.add, parts.next_draw, parts.after
    is_live, set_value, free_slot = parts.is_live, parts.set_value, parts.free_slot
    reversed_of, weight, reduce = parts.reversed_of, parts.weight, parts.reduce

    @parts.jit
    def plus(fast, far, lane, own, rng, walker):
        """Split two terms into three; return (change of the rank, random state), 0 if no pair allows it.

        a b c + a' b' c' = a (b + p b') c + a b' (q c' - p c) + (a' - q a) b' c' with signs p and q; the draw
        selects the roles of the factors, and shift and reversal of an orbit. The terms must differ in all factors.
        """
        slot = free_slot(fast, far, lane, own)
        if slot == U32(room):
            return I32(0), rng
        for _ in range(PLUS_TRIES):
            rng = next_draw(rng, walker)
            draw = U32(rng >> U64(32))
            i = U32((U64(draw) * U64(room)) >> U64(32))
            draw = U32(draw * U32(room))
            j = U32((U64(draw) * U64(room)) >> U64(32))
            draw = U32(draw * U32(room))
            if i == j or not is_live(fast, far, lane, own, i) or not is_live(fast, far, lane, own, j):
                continue
            f = U32((U64(draw) * U64(3)) >> U64(32))
            draw = U32(draw * U32(3))
            q = f
            if symmetric:
                q = U32((U64(draw) * U64(3)) >> U64(32))
                draw = U32(draw * U32(3))
            mirrored = U32(draw >> U32(31))
            g, gq = after(f), after(q)
            e, eq = after(g), after(gq)
            if mirrored:
                g, e, gq, eq = e, g, eq, gq
            a, b, c = factors(fast, far, lane, own, i, f, g, e)
            aj, bj, cj = factors(fast, far, lane, own, j, q, gq, eq)
            if paired and U32(draw >> U32(30)) & U32(1) != U32(0):
                aj, bj, cj = reversed_of(aj), reversed_of(bj), reversed_of(cj)
            size = weight(fast, far, lane, own, i)
            if same(a, aj) or same(b, bj) or same(c, cj) or size != weight(fast, far, lane, own, j):
                continue
            si, sj = sign_of(fast, lane, i), sign_of(fast, lane, j)
            for n in range(4):
                signs = U32(U32(draw >> U32(29)) ^ U32(n))
                p, s = U32(signs & U32(1)), U32(U32(signs >> U32(1)) & U32(1))
                first, fits = add(b, bj, p)
                second, fits_too = add(cj, c, U32(U32(1) ^ p ^ s ^ si ^ sj))
                third, fits_three = add(aj, a, U32(U32(1) ^ s))
                if fits and fits_too and fits_three:
                    turn_sign(fast, lane, j, s)
                    turn_sign(fast, lane, slot, sj)
                    # A loop, so that the code of a scan, which is long, occurs once; a plus is rare.
                    for part in range(7):
                        at, term, value = g, i, first
                        if part == 1:
                            at, term, value = q, j, a
                        elif part == 2:
                            if not paired:
                                continue  # it is what it was, as the orbit was not reversed
                            at, term, value = gq, j, bj
                        elif part == 3:
                            at, term, value = eq, j, second
                        elif part == 4:
                            at, term, value = f, slot, third
                        elif part == 5:
                            at, term, value = g, slot, bj
                        elif part == 6:
                            at, term, value = e, slot, cj
                        turn_sign(fast, lane, term, set_value(fast, far, lane, own, at, term, value))
                    if paired:
                        change = I32(size + reduce(fast, far, lane, own, i, size))
                        change = I32(change + reduce(fast, far, lane, own, j, size))
                        return I32(change + reduce(fast, far, lane, own, slot, size)), rng
                    return size, rng
        return I32(0), rng


def make_moves(parts: KernelParts) -> None:
    """Add the moves of a layout, as functions for the kernel to call."""
    for make in (make_terms, make_orbits, make_step, make_plus):
        make(parts)
    room, factors, cost, is_live = 32 * parts.form.masks, parts.factors, parts.cost, parts.is_live

    @parts.jit
    def total_cost(fast, far, lane, own, halves):
        total = I32(0)
        for n in range(room):
            slot = U32(n)
            if is_live(fast, far, lane, own, slot):
                a, b, c = factors(fast, far, lane, own, slot, U32(0), U32(1), U32(2))
                total = I32(total + cost(halves, U32(0), a, U32(1), b, U32(2), c))
        return total
