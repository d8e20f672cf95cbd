"""Dispatch of the moves of a walk by the kind of its arena, at compile time.

A compiled walk contains the code of one kind only; a branch on the kind would take minutes to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..terms.bits import overload
from ..terms.packed import Words
from ..terms.rings import GF2
from . import dependence, moves, orbit_moves
from .slots import SlotKind, WordArena


def _lengths(kind: Any) -> dict[str, int]:
    """Return the lengths of a kind's parts, from the kind or from its numba type."""
    parts = kind._asdict() if isinstance(kind, SlotKind) else dict(zip(kind.fields, kind.types, strict=True))
    return {name: len(part) for name, part in parts.items()}


def _moves(kind: Any) -> Any:
    return moves if _lengths(kind)["turns"] == 1 else orbit_moves


def _depends(kind: Any) -> bool:
    lengths = _lengths(kind)
    return (lengths["ring"], lengths["turns"], lengths["guard"]) == (GF2, 1, 1)


def try_flip(kind: SlotKind, x: Words, buckets: Words, active: Words, guard: Words, draw: np.uint64) -> int:
    """Try a flip; see `moves.try_flip`."""
    return int(_moves(kind).try_flip(kind, x, buckets, active, guard, draw))


@overload(try_flip, jit_options={"forceinline": True, "_nrt": False})
def _try_flip(kind, x, buckets, active, guard, draw):  # numba compares the signatures, annotations too
    move = _moves(kind).try_flip
    return lambda kind, x, buckets, active, guard, draw: move(kind, x, buckets, active, guard, draw)


def load(kind: SlotKind, s: WordArena, terms: Words) -> None:
    """Replace all terms."""
    _moves(kind).load(s, terms)


@overload(load, jit_options={"_nrt": False})
def _load(kind, s, terms):
    move = _moves(kind).load
    return lambda kind, s, terms: move(s, terms)


def reduce(kind: SlotKind, s: WordArena) -> None:
    """Drop zero terms and merge terms that share two factors."""
    _moves(kind).reduce(s)


@overload(reduce, jit_options={"_nrt": False})
def _reduce(kind, s):
    move = _moves(kind).reduce
    return lambda kind, s: move(s)


def plus(kind: SlotKind, s: WordArena) -> bool:
    """Make a plus transition; return False if no pair allows it."""
    return bool(_moves(kind).plus(s))


@overload(plus, jit_options={"_nrt": False})
def _plus(kind, s):
    move = _moves(kind).plus
    return lambda kind, s: move(s)


def reduce_dependent(kind: SlotKind, s: WordArena) -> bool:
    """Reduce by a linear dependence, over GF(2) without symmetry or guard; return whether there was one.

    Dependences of three terms are found by flips.
    """
    return _depends(kind) and bool(dependence.reduce_dependent(s))


@overload(reduce_dependent, jit_options={"_nrt": False})
def _reduce_dependent(kind, s):
    if _depends(kind):
        return lambda kind, s: dependence.reduce_dependent(s)
    return lambda kind, s: False
