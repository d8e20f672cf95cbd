"""Turn of an improvement on a processor: one search, by the route and the policy with the highest expected gain."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...schemes_db import Ring, Scheme, Z
from ...schemes_db.catalog import Catalog
from ...schemes_db.run_record import RunRecord
from ..runs.config import RunConfig
from .gaps import Gap
from .history import Choice, History, symmetric_walks, varied
from .starts import best_below

LONGEST = 60.0
"""Maximum seconds of a turn; then the format with the highest expected gain has the next."""

_OPTIONS = {"plus_after": "--plus", "margin": "--margin", "restart_after": "--restart"}


@dataclass(frozen=True)
class Search:
    """The search of a turn on a processor: its configuration, its route and policy, and the rank of its start."""

    config: RunConfig
    choice: Choice
    start: int

    def record(
        self, gap: Gap, *, rounds: int, flips: int, seconds: float, finds: int, ranks: Sequence[int]
    ) -> RunRecord:
        """Return the record of the search for the catalogue; `ranks` are those that walks reached."""
        return RunRecord(
            command=self.config.command,
            target=gap.target.name,
            ring=Z.name if self.config.ring == "ZT" else self.config.ring,
            seed=self.config.seed,
            rounds=rounds,
            flips=flips,
            seconds=seconds,
            finds=finds,
            device="cpu",
            route=self.choice.route,
            policy=self.choice.policy,
            start=self.start,
            rank=gap.rank,
            reached=min(ranks, default=self.start),
        )


def next_search(gap: Gap, ring: str, over: Ring, catalog: Catalog, history: History, seed: int) -> Search | None:
    """Return the search of a turn, with the command that repeats it; None where every route is a dead end.

    Routes: symmetric walks, the best stored scheme of a smaller format, a stored scheme of the format itself, naive.
    """
    m, k, n = gap.target.shape
    ways: dict[str, tuple[str, Scheme | None]] = {}
    if ring != "ZT":
        ways |= {route: (walk, None) for route, walk in symmetric_walks(gap.target).items()}
    entries = catalog.entries(target=gap.target.name, max_rank=gap.rank)
    kept = [one for one in entries if one.ring in (over.name, "Z") and one.rank == gap.rank]
    below = best_below(catalog, gap.target, over)
    for route, start in (("below", below), ("own", catalog.find(kept[0].digest)[0] if kept else None)):
        if start is not None and (ring != "ZT" or start.ternary):
            ways[route] = ("", start)
    ways["naive"] = ("", None)
    # A start of a smaller format is completed naively.
    lowest = {
        route: m * k * n - (len(start.target.terms) - start.rank if start else 0) for route, (_, start) in ways.items()
    }
    choice = history.choose(gap, lowest)
    if choice is None:
        return None
    walk, start = ways[choice.route]
    return Search(_config(gap, ring, seed, walk, start, choice.policy), choice, lowest[choice.route])


def _config(gap: Gap, ring: str, seed: int, walk: str, start: Scheme | None, variant: str) -> RunConfig:
    name, rank = gap.target.name, gap.rank - 1
    words = ["lcma", "search", name, "--rank", str(rank), "--ring", ring, "--seed", str(seed)]
    words += ["--walk", walk] if walk else []
    words += ["--start", start.digest[:16]] if start else []

    def config(policy: dict[str, Any]) -> RunConfig:
        command = shlex.join([*words, "--time", f"{LONGEST:g}s"])
        return RunConfig(
            name, rank, ring, seed, seconds=LONGEST, walk=walk, policy=policy, command=command, start=start
        )

    plain = config({})
    if not variant:
        return plain
    own = plain.target_policy
    changed = varied(own, variant)
    policy = {name: getattr(changed, name) for name in _OPTIONS if getattr(changed, name) != getattr(own, name)}
    words += [word for option, value in policy.items() for word in (_OPTIONS[option], str(value))]
    return config(policy)
