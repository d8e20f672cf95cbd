"""One walk for groups of products, and its terms, costs and steps as `kernel` has them."""

from __future__ import annotations

import numpy as np

from ...schemes_db.composed_ranks import BOARD_SIDE
from ...schemes_db.constructions import FACTOR_AXES
from ...schemes_db.uneven import Shape
from ..seeds import splitmix
from ..terms.ternary import TernaryTerms, canonical, with_signs
from ..terms.ternary_words import HALF_BITS, packed, unpacked
from . import kernel
from .kernel import Cooling, Costs, State
from .product_rank import InnerFormat

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
    rng = np.array([splitmix(seed, index)], dtype=np.uint64)
    cooling = cooling_of(inner, max(start.rank, rank), steps)
    state, best = state_of(start, inner, cooling.limit), state_of(start, inner, cooling.limit)
    reached = kernel.walk(state, best, costs_of(inner, start.target.shape, cooling.limit), cooling, rank, rng)
    return terms_of(start, best) if reached else start


def costs_of(inner: InnerFormat, outer: Shape, most: int) -> Costs:
    """Return the costs of walks at ranks up to `most`."""
    gains = inner.table(most + 1)
    lines = [np.array(longer or (False,) * count) for longer, count in zip(inner.longer, outer, strict=True)]
    longer = []
    for rows, columns in FACTOR_AXES:
        for blocks in (lines[rows][:, None], lines[columns]):
            whole = np.broadcast_to(blocks, (outer[rows], outer[columns]))
            word = sum(1 << int(place) for place in np.flatnonzero(whole))
            longer.append(word | word << HALF_BITS)
    axes = np.flatnonzero(gains.any(axis=(0, 2)))
    return Costs(inner.ranks, gains, axes if len(axes) else np.array([0]), np.array(longer, dtype=np.uint64))


def cooling_of(inner: InnerFormat, rank: int, steps: int) -> Cooling:
    """Return the steps and temperatures of walks from and to schemes of at most a rank; without steps no detour."""
    gains, ranks = inner.table(BOARD_SIDE)[0, :, 2:], inner.ranks
    pair = float(gains[:, 0].max() or gains.max() or np.median(ranks[[1, 2, 4]] - ranks[0]) / 2)
    detour = DETOUR_STEPS if steps else 0
    plus_after = max(steps // PLUS_SHARE, 1)
    return Cooling(rank + DETOUR_ROOM, steps, plus_after, detour, DETOUR_PLUS, DESCENTS, pair, HOT, COLD)


def state_of(terms: TernaryTerms, inner: InnerFormat, most: int) -> State:
    """Return a state with the terms and room for `most`, all terms in groups by one factor."""
    forms, signs = canonical(terms)
    x, turns = np.zeros((3, most), dtype=np.uint64), np.zeros(most, dtype=np.uint64)
    x[:, : terms.rank] = packed(TernaryTerms(terms.target, forms))
    turns[: terms.rank] = signs & np.uint64(HALF_BITS)
    labels = np.full(most, inner.table(BOARD_SIDE).any(axis=(0, 2)).argmax(), dtype=np.int64)
    return State(x, turns, labels, np.array([terms.rank, 0], dtype=np.int64))


def terms_of(like: TernaryTerms, state: State) -> TernaryTerms:
    rank = int(state.numbers[0])
    forms = unpacked(like.target, np.ascontiguousarray(state.x[:, :rank]))
    signs = np.where(state.signs[:rank] != 0, ~np.uint64(0), np.uint64(0))
    return with_signs(forms, forms.words, signs)
