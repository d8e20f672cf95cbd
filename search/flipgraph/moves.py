"""Moves of the flip graph, compiled for every ring and symmetry: flip, reduce, plus.

A move whose result leaves the ring (over the integers, has a coefficient outside {-1, 0, 1}) is rejected.
Sources: Kauers and Moosbauer, "Flip graphs for matrix multiplication" (arXiv 2212.01175) for flips
and reductions; Arai, Ichikawa and Hukushima, "Adaptive flip graph algorithm" (arXiv 2312.16960) for
the plus transition; Moosbauer and Poole (arXiv 2502.04514) for orbits. `tests/search/flip_reference.py` and
`orbit_reference.py` are the equivalents in plain Python.

Two functions of one move are chosen by the kind of an arena at compile time (`by_kind`): a compiled walk contains the
code of one kind only, as a branch on the kind would take minutes to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ..basis.sparsify_kernel import half_in
from ..terms.bits import ONE, compiled, next_draw, overload, popcount
from ..terms.rings import GF2, ZERO, added, equal, opposite, sign_from, turned
from . import flips, orbit_flips
from .constraints import FULL, NONZEROS
from .elements import count_rank, drop, image, is_alike, put, value_of
from .policy import PLUS_TRIES
from .slots import WordArena, factor_at, free_slot, is_live, pick, set_live, term_sign, turn_term

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)

Lengths = dict[str, int]
"""The lengths of the parts of a `SlotKind`."""


def is_plain(lengths: Lengths) -> bool:
    """Return whether a walk has no symmetry."""
    return lengths["turns"] == 1


def has_dependences(lengths: Lengths) -> bool:
    """Return whether a walk reduces by linear dependences: over GF(2), without symmetry or guard."""
    return (lengths["ring"], lengths["turns"], lengths["guard"]) == (GF2, 1, 1)


def _lengths(of: Any) -> Lengths:
    """Return the lengths of a kind or of that of an arena, also if only their numba type is given."""
    parts = dict(zip(of.fields, of.types, strict=True)) if hasattr(of, "fields") else of._asdict()
    return _lengths(parts["kind"]) if "kind" in parts else {name: len(part) for name, part in parts.items()}


def by_kind(when: Callable[[Lengths], bool], one: Any, other: Any, **options: Any) -> Any:
    """Return a function that is `one` where `when` is true, else `other`: compiled functions of the same signature.

    Their first argument is an arena or its kind. `options` are those of njit.
    """

    def chosen(of: Any) -> Any:
        return one if when(_lengths(of)) else other

    def plain(function: Any) -> Any:
        return getattr(function, "py_func", function)  # under NUMBA_DISABLE_JIT it is plain already

    @wraps(plain(one))
    def function(of: Any, *rest: Any) -> Any:
        return chosen(of)(of, *rest)

    @overload(function, jit_options={"_nrt": False, **options})
    @wraps(plain(one))  # numba compares the signatures
    def _compiled(of: Any, *rest: Any) -> Any:
        return plain(chosen(of))

    return function


try_flip = by_kind(is_plain, flips.try_flip, orbit_flips.try_flip, forceinline=True)

shrink = by_kind(is_plain, flips.shrink, orbit_flips.shrink)

reduce_dependent = by_kind(has_dependences, flips.reduce_dependent, flips.no_dependence)


@compiled(internal=True)
def count_full(s: WordArena) -> None:
    """Recount the full products."""
    if len(s.kind.guard) > 1:
        s.guard[FULL] = ZERO
        for t in range(64 * len(s.kind.lanes)):
            half = False
            for q in range(3):
                value = factor_at(s.kind, s.x, np.uint64(q), np.uint64(t))
                half |= half_in(s.guard, np.uint64(q), value[0] | value[1])
            s.guard[FULL] += ZERO if half else ONE


@compiled(forceinline=True)
def fits(s: WordArena, plus: np.uint64, minus: np.uint64, clash: np.uint64) -> bool:
    """Return whether a sum is allowed as a factor."""
    return clash == ZERO and (len(s.kind.guard) == 1 or popcount(plus | minus) <= s.guard[NONZEROS])


@compiled(forceinline=True)
def cancel(s: WordArena, slot: int, paired: bool) -> None:
    """Set an element to zero if it was not its own reversal and is now: its terms cancel in pairs."""
    if paired and is_alike(s, slot):
        put(s, 0, slot, (ZERO, ZERO))


@compiled(forceinline=True)
def merge(s: WordArena, t: int, u: int) -> bool:
    """Merge two elements that share two factors, the second shifted and reversed; return whether they do.

    The sum must stay in the ring.
    """
    for turn in range(len(s.kind.turns)):
        shared, odd = 0, 2
        for p in range(3):
            if equal(s.kind.ring, value_of(s, s.x, p, t), image(s, turn, p, u)):
                shared += 1
            else:
                odd = p
        if shared >= 2:
            paired = len(s.kind.turns) % 2 == 0 and not is_alike(s, t)
            sign = term_sign(s.kind, s.x, np.uint64(t)) ^ term_sign(s.kind, s.x, np.uint64(u))
            other = turned(s.kind.ring, image(s, turn, odd, u), sign)
            plus, minus, clash = added(s.kind.ring, value_of(s, s.x, odd, t), other)
            if fits(s, plus, minus, clash):
                put(s, odd, t, (plus, minus))
                cancel(s, t, paired)
                drop(s, u)
                return True
    return False


@compiled
def reduce(s: WordArena) -> None:
    """Drop elements with a zero factor, replace orbits by smaller ones, and merge those that share two factors."""
    slots = 64 * len(s.live)
    again = True
    while again:
        again = False
        for t in range(slots):
            if is_live(s.live, np.uint64(t)):
                again |= shrink(s, t)
        for t in range(slots):
            for u in range(t + 1, slots if is_live(s.live, np.uint64(t)) else 0):
                if is_live(s.live, np.uint64(u)) and is_alike(s, t) == is_alike(s, u):
                    again |= merge(s, t, u)
    count_rank(s)


@compiled
def plus(s: WordArena) -> bool:
    """Make a plus transition: split two elements into three, which have other flips; return False if no pair allows it.

    a b c + a' b' c' = a (b + p b') c + a b' (q c' - p c) + (a' - q a) b' c' with signs p and q; the draw
    selects signs and the roles of the factors, and shifts and reverses the second orbit. They must differ in all
    factors, up to sign.
    """
    kind, ring = s.kind, s.kind.ring
    slot, count = np.int64(free_slot(s.live)), ZERO
    for lane in range(len(s.live)):
        count += popcount(s.live[lane])
    if slot == 64 * len(s.live) or (len(kind.turns) != 2 and count <= ONE):
        return False
    for _ in range(PLUS_TRIES):
        draw = next_draw(s.rng[0])
        i = np.int64(pick(s.live, draw >> _HALF))
        draw = next_draw(draw)
        j = np.int64(pick(s.live, draw >> _HALF))
        s.rng[0] = draw
        choice = np.int64(((draw & _LOW) * np.uint64(6 * len(kind.turns))) >> _HALF)
        turn, f = choice // 6, choice % 6 // 2
        g = (f + 1 + choice % 2) % 3
        e = 3 - f - g
        ai, bi = value_of(s, s.x, f, i), value_of(s, s.x, g, i)
        aj, bj = image(s, turn, f, j), image(s, turn, g, j)
        ci, cj = value_of(s, s.x, e, i), image(s, turn, e, j)
        if i == j or is_alike(s, i) != is_alike(s, j) or equal(ring, ai, aj) or equal(ring, bi, bj):
            continue
        if equal(ring, ci, cj):
            continue
        sign_j = term_sign(kind, s.x, np.uint64(j))
        ci, cj = turned(ring, ci, term_sign(kind, s.x, np.uint64(i))), turned(ring, cj, sign_j)
        paired = len(kind.turns) % 2 == 0 and not is_alike(s, i)
        for n in range(4):
            signs = draw ^ np.uint64(n)
            p, q = sign_from(ring, signs), sign_from(ring, signs >> ONE)
            bu, bd, clash_b = added(ring, bi, turned(ring, bj, p))
            cu, cd, clash_c = added(ring, turned(ring, cj, q), turned(ring, ci, opposite(ring, p)))
            au, ad, clash_a = added(ring, aj, turned(ring, ai, opposite(ring, q)))
            if fits(s, bu, bd, clash_b) and fits(s, cu, cd, clash_c) and fits(s, au, ad, clash_a):
                put(s, g, i, (bu, bd))
                # The second orbit is stored as it was drawn: shifted and reversed.
                turn_term(kind, s.x, np.uint64(j), sign_j)
                put(s, f, j, ai)
                put(s, g, j, bj)
                put(s, e, j, (cu, cd))
                put(s, f, slot, (au, ad))
                put(s, g, slot, bj)
                put(s, e, slot, cj)
                set_live(s.live, np.uint64(slot), True)
                for changed in (i, j, slot):
                    cancel(s, changed, paired)
                count_rank(s)
                return True
    return False
