"""What walks of a GPU are timed with: fleets, the pools that cases hand on, and finds written out as they come."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import PlanError
from ...home import data_folder
from ...schemes_db import Certificate, Provenance, Scheme, parse_target
from ...schemes_db.formats import lcma_json
from ...search import Policy, pack_start
from ...search.flipgraph.gpu.fleet import Fleet
from ...search.flipgraph.gpu.search_until import SearchOutcome
from .case import Options

KEPT = 40
"""Finds of one seed, or of one format and rank of a ladder, that are written out."""

Pools = dict[tuple[str, str, int], list[Scheme]]


def naive(name: str, walk: str = "flip") -> Scheme:
    """The start of a walk."""
    return pack_start(walk, parse_target(name)).to_scheme()


class Bench:
    """The cases of one session, with what they have found so far."""

    def __init__(self, options: Options) -> None:
        self.options, self.pools = options, Pools()

    def fleet(self, starts: Sequence[Scheme], policy: Policy, seed: int, **kind: Any) -> Fleet:
        """A fleet on the device asked for; `--sample` is the number of walkers, else as many as fit."""
        return Fleet(starts, policy, seed=seed, walkers=self.options.sample, device=self.options.device, **kind)

    def keep(self, goal: int, result: SearchOutcome, ring: str) -> None:
        """Give finds to later cases."""
        if result.schemes:
            self.pools.setdefault((result.schemes[0].target.name, ring, goal), []).extend(result.schemes)

    def stream(self, case: str) -> Callable[[Scheme, Certificate], None]:
        """What writes finds out the moment they are certified, the first KEPT of each format and rank."""
        path = data_folder() / "finds" / "search_gpu.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        written = Counter[tuple[str, int]]()

        def on_find(scheme: Scheme, certificate: Certificate) -> None:
            kind = scheme.target.name, scheme.rank
            written[kind] += 1
            if written[kind] <= KEPT:
                with path.open("a", encoding="utf-8") as stream:
                    stream.write(_line(case, scheme, certificate, self.options.seed))

        return on_find

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
