"""History of the gains of turns, also of other runs, and the choice of format, route and policy of the next turn.

The catalogue's table `runs` stores every turn. The worth of a format is its ranks to gain, divided by its size, times
the gain of its turns a minute at its current rank. The worth of a route or a policy is the average gain of its turns at
that rank and of one assumed turn: so options without gains are tried rarely, but never abandoned. A route with half an
hour of device time without a gain, at the same rank and from no higher start, is a dead end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...schemes_db import Target
from ...schemes_db.run_record import RunRecord
from ..flipgraph.policy import Policy, Selection
from ..flipgraph.walkers import PAIRS
from ..format_moves.symmetric import NAIVE_SIZE
from ..terms.words import is_wide
from .gaps import Gap
from .neighbours import BORDER, CUT

NESTED = "nested"
"""Route by walks on schemes that are invariant under reversal, from nested sums and products of smaller ones."""

SYMMETRIC = {"symmetry": "flip-c3", "reversal": PAIRS, NESTED: PAIRS}
"""Routes by symmetric walks, and their walks. All but NESTED start from the naive scheme."""

TRIPLES = "triples"
"""Route by annealing of Strassen triples, for formats with a side of 2: it has no walks."""

LEAST_SQUARES = "least squares"
"""Route over Q, for small formats: no walks, and rational schemes near real solutions of the equations."""

GROUPS = "groups"
"""Route by walks for groups of products of a smaller format; the find is the product with the other factor."""

UNRANKED = (*SYMMETRIC, TRIPLES, LEAST_SQUARES)
"""Routes by symmetric walks, or without walks: a high start is no disadvantage of theirs."""

EASY_SIDE = 3
"""Largest side of a square format without symmetric walks, and of the format up to whose size others have none."""

MINUTE = 60.0

DEAD_END = 1800.0
"""Seconds of device time without a gain after which a route is a dead end, unless it starts lower."""

NEARER = 0.1
"""Gain of a turn that came from its start all the way to the known rank, but not below it."""

OTHER_POLICY = 0.5
"""Assumed gain of a variant of the policy; that of the format's own, on a GPU from borders and cuts of `keen`, is 1."""

KEEN = Selection(10, 0.3, 0.05, islands=32)
"""A selection that follows the lowest walkers at once: an island ends as copies of one walker, so a turn is short.

One H200, 400 schemes 5x5x6:110 with a border (rank 135), 10,560 walkers, populations of 11 s: of eight with 32
islands one came to 127 and four to 129, of seven with 64 islands two to 129, of seven with 128 islands none below 131.
Three of 75 s with 8 islands came to 129, 130 and 129, within 10 to 17 s. From 64 schemes 5x5x7:127 the second of two
populations of 13 s came to 5x5x8:144.
"""

KEEN_SECONDS = 12.0
"""Seconds of a turn with the selection KEEN."""

VARIANTS: dict[str, Callable[[Policy], Policy]] = {
    "": lambda policy: policy,
    "often": lambda policy: replace(policy, plus_after=max(policy.plus_after // 5, 1)),
    "seldom": lambda policy: replace(policy, plus_after=5 * policy.plus_after),
    "wide": lambda policy: replace(policy, margin=policy.margin + 3),
    "restart": lambda policy: replace(policy, restart_after=20_000_000),
    "keen": lambda policy: replace(policy, selection=KEEN),
    "apart": lambda policy: replace(policy, selection=Selection()),
}
"""The policy of the format, and others: pluses five times as often or seldom, three more ranks up, restarts, selection
by KEEN, and none."""

SELECTING = ("keen", "apart")
"""The variants that differ in the selection among the walkers of a GPU."""

DESCENT = 0.05
"""A start that is this share above the lowest has half its worth: 5x6x6 fell from 140 to 130, by 7%."""


def symmetric_routes(target: Target) -> list[str]:
    """Return the routes by symmetric walks that are better than others from their starts for a format."""
    m, k, n = target.shape
    if is_wide(target) or m * k * n <= EASY_SIDE**3:
        return []
    square, small = m == k == n > EASY_SIDE, m * k * n <= NAIVE_SIZE
    return [*(["symmetry"] if square else []), NESTED, *(["reversal"] if small else [])]


def gain(turn: RunRecord) -> float:
    """Return the ranks gained below the known one, else NEARER times the share of the way from the start to it."""
    if turn.reached < turn.rank:
        return float(turn.rank - turn.reached)
    return NEARER * max(turn.start - turn.reached, 0) / max(turn.start - turn.rank, 1)


@dataclass(frozen=True)
class Choice:
    """The route and the policy of a turn."""

    route: str
    policy: str


class History:
    """The turns on some formats over one ring on one kind of device, oldest first."""

    def __init__(self, turns: Iterable[RunRecord] = ()) -> None:
        self.turns = list(turns)

    def here(self, gap: Gap) -> list[RunRecord]:
        """Return the turns on a format at its current rank."""
        return [one for one in self.turns if one.target == gap.target.name and one.rank == gap.rank]

    def worth(self, gap: Gap) -> float:
        """Return the expected gain of a turn on a format, relative to its size."""
        here = self.here(gap)
        minutes = sum(one.seconds for one in here) / MINUTE
        return gap.priority * (1 + sum(map(gain, here))) / (1 + minutes)

    def dead(self, gap: Gap, route: str, start: int) -> bool:
        """Return whether a route that starts at a rank is a dead end: turns from no higher rank failed for DEAD_END."""
        tried = [one for one in self.here(gap) if one.route == route and one.start <= start]
        return sum(one.seconds for one in tried if one.reached >= one.rank) >= DEAD_END

    def choose(self, gap: Gap, starts: Mapping[str, int], variants: Iterable[str] = VARIANTS) -> Choice | None:
        """Return the route, of those in `starts` (name: lowest rank), and variant of the policy of the highest gain.

        None if all routes are dead ends.
        """
        here = self.here(gap)
        alive = [route for route, start in starts.items() if not self.dead(gap, route, start)]
        if not alive:
            return None
        lowest = min(starts.values())
        assumed = {one: 1.0 if one in UNRANKED else 1 / (1 + (starts[one] / lowest - 1) / DESCENT) for one in alive}
        route = _best(assumed, "route", here)
        usual = "keen" if route in (BORDER, CUT) and "keen" in variants else ""
        tried = [one for one in here if one.route == route]
        return Choice(route, _best({one: 1.0 if one == usual else OTHER_POLICY for one in variants}, "policy", tried))


def _best(assumed: Mapping[str, float], field: str, turns: Sequence[RunRecord]) -> str:
    """Return the option, a value of the field, of the highest mean gain of its turns and an assumed one."""

    def worth(option: str) -> float:
        gains = [gain(one) for one in turns if getattr(one, field) == option]
        return (assumed[option] + sum(gains)) / (1 + len(gains))

    return max(assumed, key=worth)
