"""One walk: to another scheme of about the same rank through higher ranks, then cooling towards more groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..seeds import splitmix
from ..terms.ternary import TernaryTerms, canonical, with_signs
from ..terms.ternary_words import HALF_BITS, packed, unpacked
from .product_rank import InnerFormat

if TYPE_CHECKING:
    from .kernel import State

DETOUR_STEPS, DETOUR_PLUS, DETOUR_ROOM, DESCENTS = 200_000, 10_000, 3, 6
"""Steps of a detour (times 1 to 4), steps between its pluses, how far it goes above the rank wanted, and the number of
descents of DETOUR_STEPS each that it has to return."""

HOT, COLD = 0.8, 0.15
"""First and last temperature in gains of a pair. At 3x3x3 over 1x3x3 and 2x3x5 over 3x3x1, 0.4 to 0.1 and 1.5 to 0.3
lead to the same costs."""

PLUS_SHARE = 50
"""A walk makes a plus after its steps / PLUS_SHARE without a lower cost."""


def walk(start: TernaryTerms, inner: InnerFormat, rank: int, steps: int, seed: int, index: int) -> TernaryTerms:
    """Walk from a scheme to one of at most a rank whose product with the inner format has a low rank.

    Returns the start where the walk does not get down to that rank.

    Raises:
        PlanError: a factor has more than 32 blocks.
    """
    from .kernel import Costs, cool

    rng = np.array([splitmix(seed, index)], dtype=np.uint64)
    most = max(start.rank, rank) + DETOUR_ROOM
    state, best = _state(start, inner, most), _state(start, inner, most)
    costs = Costs(inner.rank, inner.table(most + 1), np.flatnonzero(inner.gains.any(axis=1)))
    pair = float(inner.gains[:, 2:].max() if not inner.gains[:, 2].any() else inner.gains[:, 2].max())
    length = DETOUR_STEPS * (1 + splitmix(seed, index) % 4) if steps else 0
    cool(state, best, costs, length, 2 * pair, pair, DETOUR_PLUS, most, rng)
    for _ in range(DESCENTS):
        if state.numbers[0] > rank:
            cool(state, best, costs, min(length, DETOUR_STEPS), pair, pair, DETOUR_STEPS + 1, 0, rng)
    if state.numbers[0] > rank:
        return start
    cool(state, best, costs, steps, HOT * pair, COLD * pair, max(steps // PLUS_SHARE, 1), rank, rng)
    return _terms(start, best)


def _state(terms: TernaryTerms, inner: InnerFormat, most: int) -> State:
    """Return a state with the terms and room for `most`, all terms in groups by one factor."""
    from .kernel import State

    forms, signs = canonical(terms)
    x, turns = np.zeros((3, most), dtype=np.uint64), np.zeros(most, dtype=np.uint64)
    x[:, : terms.rank] = packed(TernaryTerms(terms.target, forms))
    turns[: terms.rank] = signs & np.uint64(HALF_BITS)
    labels = np.full(most, np.flatnonzero(inner.gains.any(axis=1))[0], dtype=np.int64)
    return State(x, turns, labels, np.array([terms.rank, 0], dtype=np.int64))


def _terms(like: TernaryTerms, state: State) -> TernaryTerms:
    rank = int(state.numbers[0])
    forms = unpacked(like.target, np.ascontiguousarray(state.x[:, :rank]))
    signs = np.where(state.signs[:rank] != 0, ~np.uint64(0), np.uint64(0))
    return with_signs(forms, forms.words, signs)
