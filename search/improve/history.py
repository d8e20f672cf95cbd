"""What turns gained before, also in other runs: which format, route and policy the next one is spent on.

The catalogue's table `runs` holds every turn. A format is worth ranks to gain, by its work, times what its turns gained
a minute at the rank where it stands. A route or a policy is worth what its turns at that rank gained on average, beside
one turn that is assumed: so what never gained is tried seldom, and never quite given up. A route that had
half an hour of a device in vain, from the same rank to the same rank, is a dead end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...schemes_db.run_record import RunRecord
from ..flipgraph.policy import Policy
from .gaps import Gap

SYMMETRY = "symmetry"
"""The route by symmetric walks; it starts high, which says nothing of it."""

MINUTE = 60.0

DEAD_END = 1800.0
"""Seconds of a device without a gain after which a route is a dead end, as long as it starts no lower."""

NEARER = 0.1
"""What a turn is worth that came nearer to the rank at hand, but not below it."""

OTHER_POLICY = 0.5
"""What is assumed of a variant of the policy, where the format's own is assumed to gain 1."""

VARIANTS = ("", "often", "seldom", "wide", "restart")
"""The policy of the format, and others: pluses five times as often or seldom, three more ranks up, restarts."""


def varied(policy: Policy, variant: str) -> Policy:
    """A policy in one of the `VARIANTS`."""
    if variant == "often":
        return replace(policy, plus_after=max(policy.plus_after // 5, 1))
    if variant == "seldom":
        return replace(policy, plus_after=5 * policy.plus_after)
    if variant == "wide":
        return replace(policy, margin=policy.margin + 3)
    if variant == "restart":
        return replace(policy, restart_after=20_000_000)
    return policy


def gain(turn: RunRecord) -> float:
    """Ranks below the one that was at hand, or the share of the way down to it, at little worth."""
    if turn.reached < turn.rank:
        return float(turn.rank - turn.reached)
    return NEARER * max(turn.start - turn.reached, 0) / max(turn.start - turn.rank, 1)


@dataclass(frozen=True)
class Choice:
    """What a turn is spent on."""

    route: str
    policy: str


class History:
    """The turns on some formats over one ring on one kind of device, oldest first."""

    def __init__(self, turns: Iterable[RunRecord] = ()) -> None:
        self.turns = list(turns)

    def add(self, turn: RunRecord) -> None:
        """Take note of one more."""
        self.turns.append(turn)

    def of(self, target: str) -> History:
        """The turns on one format."""
        return History(turn for turn in self.turns if turn.target == target)

    def _here(self, gap: Gap) -> list[RunRecord]:
        """The turns on a format from the rank where it stands."""
        return [one for one in self.turns if one.target == gap.target.name and one.rank == gap.rank]

    def worth(self, gap: Gap) -> float:
        """The gain that is expected of a turn on a format, for its work."""
        here = self._here(gap)
        minutes = sum(one.seconds for one in here) / MINUTE
        return gap.priority * (1 + sum(map(gain, here))) / (1 + minutes)

    def dead(self, gap: Gap, route: str, start: int) -> bool:
        """Whether a route that starts at a rank is a dead end: nothing that it starts from is better than it was."""
        vain = [
            one.seconds
            for one in self._here(gap)
            if one.route == route and one.start <= start and one.reached >= one.rank
        ]
        return sum(vain) >= DEAD_END

    def choose(self, gap: Gap, starts: Mapping[str, int]) -> Choice | None:
        """The route, of those whose lowest rank is given, and the policy that promise most; None: all are dead ends."""
        here = self._here(gap)
        open_routes = [route for route, start in starts.items() if not self.dead(gap, route, start)]
        if not open_routes:
            return None
        lowest = min(starts.values())

        def route_worth(route: str) -> float:
            assumed = 1.0 if route == SYMMETRY else 1 / (1 + starts[route] - lowest)
            return _mean([one for one in here if one.route == route], assumed)

        route = max(open_routes, key=route_worth)
        tried = [one for one in here if one.route == route]

        def policy_worth(variant: str) -> float:
            return _mean([one for one in tried if one.policy == variant], OTHER_POLICY if variant else 1.0)

        return Choice(route, max(VARIANTS, key=policy_worth))


def _mean(turns: Sequence[RunRecord], assumed: float) -> float:
    """The mean gain of some turns and one that is assumed."""
    return (assumed + sum(map(gain, turns))) / (1 + len(turns))
