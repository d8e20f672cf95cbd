"""Setup for timing walks on a GPU: fleets, the pools that cases pass on, and finds written as they come."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import PlanError
from ...home import data_folder
from ...schemes_db import Certificate, Provenance, Scheme, parse_target
from ...schemes_db.formats import lcma_json
from ...search import Policy, Progress, Result, find, pack_start
from ...search.flipgraph.gpu.fleet import Fleet
from ...search.runs.run import OnEvent
from .case import Options, Say

KEPT = 40
"""Finds of one seed, and steps of a ladder, that are written out."""

POOL = 100
"""Finds of one seed that later cases may start from."""

SPOKEN_SECONDS = 5.0
"""Seconds between two lines about a run."""

Pools = dict[tuple[str, str, int], list[Scheme]]


def naive(name: str, walk: str = "flip") -> Scheme:
    """The start of a walk."""
    return pack_start(walk, parse_target(name)).to_scheme()


class Walks:
    """The cases of one session, with what they have found so far."""

    def __init__(self, options: Options) -> None:
        self.options, self.pools = options, Pools()

    def fleet(self, starts: Sequence[Scheme], policy: Policy, seed: int, **kind: Any) -> Fleet:
        """A fleet on the device asked for; `--sample` is the number of walkers, else as many as fit."""
        return Fleet(starts, policy, seed=seed, walkers=self.options.sample, device=self.options.device, **kind)

    def search(
        self,
        target: str,
        rank: int,
        seed: int,
        limit: float,
        say: Say,
        *,
        linger: float = 0.0,
        on_event: OnEvent = lambda progress: None,
        **settings: Any,
    ) -> tuple[float | None, Result]:
        """A run of the engine that `lcma search` drives, and the seconds to its first find.

        It ends with the first find, or, where finds are for later cases, after `linger` seconds more or POOL finds.
        """
        first: float | None = None
        seconds = spoken = 0.0

        def watch(progress: Progress) -> None:
            nonlocal first, seconds, spoken
            on_event(progress)
            seconds = progress.seconds
            if progress.finds and first is None:
                first = seconds
            if seconds > spoken + SPOKEN_SECONDS:
                spoken = seconds
                say(progress.line)

        chosen = {"ring": "Z2", "walks": self.options.sample or 0, "count": POOL if linger else 1, "ladder": ()}
        chosen["device"] = "twin" if self.options.device == "cpu" else self.options.device
        result = find(
            target,
            rank=rank,
            seed=seed,
            seconds=limit,
            on_event=watch,
            stop=lambda: first is not None and seconds >= first + linger,
            **{**chosen, **settings},
        )
        return first, result

    def write(self, case: str, result: Result, ring: str, rank: int) -> None:
        """Give finds to later cases, and write the first KEPT of them and of a ladder's steps out."""
        if result.finds:
            self.pools.setdefault((result.target.name, ring, rank), []).extend(result.schemes)
        path = data_folder() / "finds" / "search_gpu.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            for one in (*result.steps[:KEPT], *result.finds[:KEPT]):
                stream.write(_line(case, one.scheme, one.certificate, self.options.seed))

    def pool(self, target: str, ring: str, goal: int, make: Callable[[], Any]) -> list[Scheme]:
        """The schemes found before, or by `make` now.

        Raises:
            PlanError: there are none.
        """
        key = (target, ring, goal)
        if key not in self.pools:
            make()
        if key not in self.pools:
            raise PlanError(f"no {target}:{goal} over {ring} was found to start from")
        return list({scheme.digest: scheme for scheme in self.pools[key]}.values())

    def seeds(self, count: int) -> range:
        first = 100 * self.options.seed
        return range(first, first + (self.options.rounds or count))


def _line(case: str, scheme: Scheme, certificate: Certificate, seed: int) -> str:
    provenance = Provenance(
        kind="search",
        command=f"lcma bench search_gpu --device cuda --rows {case} --seed {seed}",
        seed=seed,
        version=certificate.version,
        relation="flip walk on a GPU",
    )
    return json.dumps(lcma_json.to_json(scheme.replace(provenance=provenance), certificate)) + "\n"
