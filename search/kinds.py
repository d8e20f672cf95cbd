"""The moves of a walk by the kind of its arena, chosen when the walk is compiled.

The length of `Arena.ring` says the kind, and it is part of the type: a walk holds the code of one
kind only, where a branch on the length would cost the compiler minutes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import arena, moves, orbit_moves, ternary_moves
from .arena import Arena
from .bits import overload
from .packed import Words

_MOVES: dict[int, Any] = {1: orbit_moves, 2: moves, 3: ternary_moves}


def try_flip(
    lanes: tuple[int, ...], ring: tuple[int, ...], x: Words, buckets: Words, active: Words, draw: np.uint64
) -> int:
    """A try of a flip; see `moves.try_flip`."""
    return int(_MOVES[len(ring)].try_flip(lanes, ring, x, buckets, active, draw))


@overload(try_flip, jit_options={"forceinline": True, "_nrt": False})
def _try_flip(lanes, ring, x, buckets, active, draw):  # numba compares the signatures, annotations too
    move = _MOVES[len(ring)].try_flip
    return lambda lanes, ring, x, buckets, active, draw: move(lanes, ring, x, buckets, active, draw)


def load(ring: tuple[int, ...], s: Arena, terms: Words) -> None:
    """Replace all terms."""
    (orbit_moves if len(ring) == 1 else arena).load(s, terms)


@overload(load, jit_options={"_nrt": False})
def _load(ring, s, terms):
    move = (orbit_moves if len(ring) == 1 else arena).load
    return lambda ring, s, terms: move(s, terms)


def settle(ring: tuple[int, ...], s: Arena) -> None:
    """Reduce where terms are zero or share two factors."""
    _MOVES[len(ring)].settle(s)


@overload(settle, jit_options={"_nrt": False})
def _settle(ring, s):
    move = _MOVES[len(ring)].settle
    return lambda ring, s: move(s)


def plus(ring: tuple[int, ...], s: Arena) -> bool:
    """Take a plus; False where no pair allows it."""
    return bool(_MOVES[len(ring)].plus(s))


@overload(plus, jit_options={"_nrt": False})
def _plus(ring, s):
    move = _MOVES[len(ring)].plus
    return lambda ring, s: move(s)


def reduce_dependent(ring: tuple[int, ...], s: Arena) -> bool:
    """Use a linear dependence, over GF(2) without symmetry; the flips find those of three terms."""
    return len(ring) == 2 and bool(moves.reduce_dependent(s))


@overload(reduce_dependent, jit_options={"_nrt": False})
def _reduce_dependent(ring, s):
    if len(ring) == 2:
        return lambda ring, s: moves.reduce_dependent(s)
    return lambda ring, s: False
