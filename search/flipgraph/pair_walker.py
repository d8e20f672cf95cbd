"""Walker of the compiled walks over GF(2) on schemes that are invariant under an involution."""

from __future__ import annotations

import numpy as np

from ..seeds import splitmix
from ..terms.packed import WORD_BITS, PackedTerms, Words, lanes_for
from ..terms.pairs import PairTerms
from ..terms.rings import GF2
from .arena import arena_of
from .policy import Policy
from .slots import SlotKind, WordArena
from .symmetric_walker import SymmetricWalker


def make_pair_arena(
    start: PairTerms, seed: int, index: int = 0, room: int = 0, policy: Policy | None = None
) -> WordArena:
    """Create a walker at `start` with slots for at least `room` more pairs.

    Raises:
        PlanError: more than 512 pairs, or a policy that does not exist.
    """
    policy = (policy or Policy()).checked()
    lanes = lanes_for(start.words.shape[1] + room)
    whole = (0, 0) if policy.orbits == "whole" else (0,)
    kind = SlotKind((0,) * lanes, (0,) * GF2, (0,) * 2, (0,), whole)
    rows = np.zeros((3, lanes * WORD_BITS), dtype=np.uint64)
    rows[:, : start.words.shape[1]] = start.words
    return arena_of(kind, rows.ravel(), lanes, splitmix(seed, index), np.zeros(11, dtype=np.uint64), policy)


def pairs_in(flat: Words, arena: WordArena, start: PairTerms) -> PairTerms:
    """Return the terms in an array of the layout of `WordArena.x`."""
    rows = flat.reshape(3, len(arena.kind.lanes) * WORD_BITS)
    return PairTerms(start.target, rows[:, rows[0] != 0].copy(), start.swaps)


class PairWalker(SymmetricWalker):
    """A walker on schemes that are invariant under an involution: a flip changes a term and its image.

    Raises:
        PlanError: the start does not fit, or the policy has bounds or fixed terms.
    """

    def __init__(self, start: PairTerms, seed: int, index: int, policy: Policy) -> None:
        super().__init__(make_pair_arena(start, seed, index, policy.margin // 2 + 1, policy), start.rank, policy)
        self._start = start

    def terms(self) -> PackedTerms:
        return pairs_in(self._arena.best, self._arena, self._start).packed()
