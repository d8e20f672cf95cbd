"""Launches of a fleet until enough is found: finds are certified as they come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ....schemes_db import Certificate, Provenance, Scheme
from ....verify import certify
from ...runs.distinct import DistinctPool
from .fleet import Fleet
from .widen import from_many_roots

Say = Callable[[str], None]

BATCH = 256
"""Finds taken off the GPU after a launch: more of the same rank are seldom of use."""


@dataclass
class SearchOutcome:
    """What came of a search_until: certified schemes in order of finding, and when each came.

    `seconds` are those since the first launch, with certifying and without compiling; `times` has one
    entry a scheme. `setup` are those before, until the walkers of a ladder stood ready. `histogram` says of
    each score how many walkers have it as their lowest.
    """

    schemes: list[Scheme] = field(default_factory=list)
    certificates: list[Certificate] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    histogram: dict[int, int] = field(default_factory=dict)
    seconds: float = 0.0
    flips: int = 0
    setup: float = 0.0

    def take(self, scheme: Scheme, seconds: float) -> None:
        """Certify a find that came after so many seconds.

        Raises:
            VerificationError: it is wrong, which must not happen.
        """
        self.certificates.append(certify(scheme))
        self.schemes.append(scheme)
        self.times.append(seconds)

    @property
    def first(self) -> float | None:
        """Seconds to the first find."""
        return self.times[0] if self.times else None


def search_until(
    fleet: Fleet,
    goal: int,
    *,
    steps: int,
    seconds: float,
    count: int = 1,
    linger: float = 0.0,
    distinct: bool = False,
    provenance: Provenance | None = None,
    on_find: Callable[[Scheme, Certificate], None] = lambda scheme, certificate: None,
    say: Say = lambda _: None,
) -> SearchOutcome:
    """Walk until `count` different schemes of a score of at most `goal` are found, or `seconds` are over.

    With `distinct`, schemes count as different only where their invariants are, and finds of many
    lines of descent come before many of one. `on_find` gets every find as soon as it is certified.

    Once there is one find, the search_until ends after `linger` seconds more: what a pool for the next format
    gets is worth some time, but not all. A walker that found starts anew.

    Raises:
        VerificationError: a walker came back with a scheme that is wrong, which must not happen.
        DeviceLostError: a GPU stopped answering.
    """
    result, begin, before = SearchOutcome(), time.perf_counter(), fleet.flips
    pool, seen = DistinctPool(), set[str]()
    spoken = begin
    while len(result.schemes) < count:
        now = time.perf_counter()
        if now - begin >= seconds or (result.times and now - begin >= result.times[0] + linger):
            break
        fleet.launch(steps, goal)
        winners = fleet.found(goal)
        for walker in from_many_roots(winners, fleet.roots)[:BATCH].tolist():
            if len(result.schemes) >= count:
                break
            scheme = fleet.scheme(walker, provenance=provenance)
            if scheme.digest in seen or (distinct and not pool.add(scheme)):
                continue
            seen.add(scheme.digest)
            result.take(scheme, time.perf_counter() - begin)
            on_find(scheme, result.certificates[-1])
        if len(winners):
            fleet.rewind(winners)
        if time.perf_counter() - spoken > 5:
            spoken = time.perf_counter()
            low = min(fleet.histogram().items())
            say(
                f"{spoken - begin:.0f} s, {fleet.flips_per_second / 1e9:.2f} Gflip/s, lowest score {low[0]} of "
                f"{low[1]} walkers, {len(result.schemes)} finds"
            )
    result.histogram = fleet.histogram()
    result.seconds, result.flips = time.perf_counter() - begin, fleet.flips - before
    return result
