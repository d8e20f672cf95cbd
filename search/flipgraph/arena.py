"""Allocation of the memory of a walker, and extraction of terms from it."""

from __future__ import annotations

import numpy as np

from ...errors import PlanError
from ..seeds import splitmix
from ..terms.packed import WORD_BITS, SchemeTerms, Words, lanes_for
from ..terms.rings import GF2, GF3, TERNARY
from ..terms.ternary import TernaryTerms, canonical, with_signs
from .constraints import make_guard
from .policy import Policy
from .slots import BUCKET_BITS, SlotKind, WordArena
from .walk import begin

LINE_WORDS = 16
"""Words of two cache lines of 64 bytes, which processors prefetch in pairs."""


def make_arena(start: SchemeTerms, seed: int, index: int = 0, room: int = 0, policy: Policy | None = None) -> WordArena:
    """Create a walker at `start` with slots for at least `room` more terms.

    Raises:
        PlanError: more than 512 terms, a zero factor, or a factor with more nonzeros than the policy allows.
    """
    policy = policy or Policy()
    lanes = lanes_for(start.rank + room)
    terms = rows_of(start, lanes * WORD_BITS)
    ring = GF2 if start.planes == 1 else TERNARY if isinstance(start, TernaryTerms) else GF3
    kind = SlotKind((0,) * lanes, (0,) * ring, (0,), (0, 0) if policy.guarded else (0,))
    return arena_of(kind, terms.ravel(), lanes, splitmix(seed, index), make_guard(start, policy), policy)


def arena_of(kind: SlotKind, terms: Words, lanes: int, state: int, guard: Words, policy: Policy) -> WordArena:
    """Create a walker at a start in the layout of `WordArena.x`, with `lanes` words of slots."""
    arena = WordArena(
        kind=kind,
        x=apart(len(terms)),
        buckets=apart(3 * lanes << BUCKET_BITS),
        active=apart(3 * lanes),
        live=apart(lanes),
        start=terms,
        best=apart(len(terms)),
        rng=apart(1),
        counters=apart(13).view(np.int64),
        guard=apart(len(guard)),
        scratch=apart(3 * WORD_BITS).reshape(3, WORD_BITS),
    )
    arena.best[:], arena.rng[:], arena.guard[:] = terms, state, guard
    begin(arena, policy.numbers)
    return arena


def apart(words: int) -> Words:
    """Allocate zeros that share no pair of cache lines with other data.

    A flip writes a few words of its own walker; if a cache line contains words of two walkers, two threads
    contend for it at every flip (false sharing).
    """
    block = np.zeros(words + 2 * LINE_WORDS, dtype=np.uint64)
    first = -(block.ctypes.data // 8) % LINE_WORDS
    return block[first : first + words]


def rows_of(terms: SchemeTerms, slots: int) -> Words:
    """Return the terms in the layout of `WordArena.x`, as rows.

    Raises:
        PlanError: a factor is zero.
    """
    if not terms.support.all():
        raise PlanError("a term with a zero factor can't start a walk: leave it out")
    rows = np.zeros((3 if terms.planes == 1 else 7, slots), dtype=np.uint64)
    words, signs = canonical(terms)
    rows[: len(words), : terms.rank] = words
    if terms.planes > 1:
        rows[-1, : terms.rank] = signs
    return rows


def terms_in(flat: Words, arena: WordArena, start: SchemeTerms) -> SchemeTerms:
    """Return the terms in an array of the layout of `WordArena.x`, of the type of the start."""
    rows = flat.reshape(-1, len(arena.kind.lanes) * WORD_BITS)
    rows = rows[:, rows[0] != 0]
    return with_signs(start, rows[: 3 * start.planes], rows[-1])


def best_terms(arena: WordArena, start: SchemeTerms) -> SchemeTerms:
    """Return the best terms of the walker so far."""
    return terms_in(arena.best, arena, start)


def current_terms(arena: WordArena, start: SchemeTerms) -> SchemeTerms:
    """Return the current terms of the walker."""
    return terms_in(arena.x, arena, start)
