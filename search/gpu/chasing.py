"""Launches of a fleet until enough is found: finds are certified as they come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ...schemes_db import Certificate, Provenance, Scheme
from ...verify import certify
from .fleet import Fleet

Say = Callable[[str], None]

BATCH = 256
"""Finds taken off the GPU after a launch: more of the same rank are seldom of use."""


@dataclass
class Chase:
    """What came of a chase: certified schemes in order of finding, and when each came.

    `seconds` are those since the first launch, with certifying and without compiling; `times` has one
    entry a scheme. `histogram` says of each score how many walkers have it as their lowest.
    """

    schemes: list[Scheme] = field(default_factory=list)
    certificates: list[Certificate] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    histogram: dict[int, int] = field(default_factory=dict)
    seconds: float = 0.0
    flips: int = 0

    @property
    def first(self) -> float | None:
        """Seconds to the first find."""
        return self.times[0] if self.times else None


def chase(
    fleet: Fleet,
    goal: int,
    *,
    steps: int,
    seconds: float,
    count: int = 1,
    linger: float = 0.0,
    provenance: Provenance | None = None,
    say: Say = lambda _: None,
) -> Chase:
    """Walk until `count` different schemes of a score of at most `goal` are found, or `seconds` are over.

    Once there is one find, the chase ends after `linger` seconds more: what a pool for the next format
    gets is worth some time, but not all. A walker that found starts anew.

    Raises:
        VerificationError: a walker came back with a scheme that is wrong, which must not happen.
        DeviceLostError: a GPU stopped answering.
    """
    result, seen, begin, before = Chase(), set(), time.perf_counter(), fleet.flips
    spoken = begin
    while len(result.schemes) < count:
        now = time.perf_counter()
        if now - begin >= seconds or (result.times and now - begin >= result.times[0] + linger):
            break
        fleet.launch(steps, goal)
        winners = fleet.found(goal)
        for walker in winners[:BATCH].tolist():
            scheme = fleet.scheme(walker, provenance=provenance)
            if scheme.digest in seen or len(result.schemes) >= count:
                continue
            seen.add(scheme.digest)
            result.certificates.append(certify(scheme))
            result.schemes.append(scheme)
            result.times.append(time.perf_counter() - begin)
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
