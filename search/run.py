"""A search: rounds of many walks, each find certified and lifted before it counts."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ..errors import PlanError
from ..schemes_db import Z2, Provenance, Q, Ring, Scheme, Target, Z, parse_ring, parse_target
from ..verify import certify
from .lifting import lift
from .packed import PackedTerms
from .policy import Policy
from .result import Find, Progress, Result, Unlifted
from .sparsify import sparsified
from .walker import Walker, make_walker

OnProgress = Callable[[Progress], None]


def find(
    target: Target | str,
    *,
    rank: int | None = None,
    ring: Ring | str = Z,
    seed: int = 0,
    walks: int = 4,
    steps: int = 1_000_000,
    rounds: int | None = None,
    seconds: float | None = None,
    count: int = 1,
    start: Scheme | None = None,
    walk: str = "flip",
    policy: Policy | None = None,
    jobs: int = 1,
    command: str = "",
    on_progress: OnProgress | None = None,
) -> Result:
    """Schemes of rank at most `rank` for a target, from walks over GF(2), lifted to `ring`.

    A run is a sequence of rounds; in each, every walk goes `steps` steps or to the rank asked for.
    Finds are taken between rounds, in walk order, in a sparse basis where the target allows it, and
    a walk that found goes back to its start. Without `rank`, every improvement on the lowest rank so
    far is a find. The finds depend on seed, walks, steps and rounds only: `jobs` threads share the
    walks, and `seconds` ends the run after a round.

    Args:
        target: what to compute, or its name.
        rank: the rank wanted.
        ring: Z2 (nothing is lifted), Z, or Q (which allows fractions).
        rounds, seconds: limits; without them the search goes on until it has `count` finds.
        count: finds to stop at, after the round; unused without `rank`.
        start: where walks start, any scheme with a meaning modulo 2; the naive scheme if None.
        walk: the kind of walk, one of `walk_names()`.
        command: how a user would run this again, for the provenance; this call if empty.
        on_progress: called after every round.

    On Ctrl-C the result holds what was found until then, with `interrupted` set.

    Raises:
        PlanError: the target does not fit a walk, the start is as good as the rank asked for, or
            nothing limits the search.
        TargetError: the target or the ring is not known.
    """
    target = parse_target(target) if isinstance(target, str) else target
    ring = parse_ring(ring) if isinstance(ring, str) else ring
    if ring not in (Z2, Z, Q):
        raise PlanError(f"a search over {ring} is not known; choose Z2, Z or Q")
    if walks < 1 or steps < 1 or count < 1 or jobs < 1:
        raise PlanError("walks, steps, count and jobs must be at least 1")
    if rank is None and rounds is None and seconds is None:
        raise PlanError("nothing limits the search: give a rank, rounds or seconds")
    if start is not None and start.target != target:
        raise PlanError(f"the start computes {start.target}, not {target}")
    terms = PackedTerms.naive(target) if start is None else PackedTerms.from_scheme(start)
    if rank is not None and terms.rank <= rank:
        raise PlanError(f"the start has rank {terms.rank} already: ask for less than that")
    policy = policy or Policy()
    walkers = [make_walker(walk, terms, seed, index, policy) for index in range(walks)]
    command = command or (
        f"find({target.name!r}, rank={rank}, ring={ring.name!r}, seed={seed}, walks={walks}, steps={steps})"
    )
    goal = rank or 0
    run = _Run(target, ring, seed, command, start, rank, terms.rank)
    with ThreadPoolExecutor(jobs) as pool:
        try:
            while not run.done(rounds, seconds, count):
                if jobs == 1:
                    for walker in walkers:
                        walker.advance(goal, steps)
                else:
                    list(pool.map(lambda walker: walker.advance(goal, steps), walkers))
                run.round += 1
                run.collect(walkers)
                if on_progress:
                    on_progress(run.progress(walkers))
        except KeyboardInterrupt:
            run.interrupted = True
    return run.result(walkers)


@dataclass
class _Run:
    """The state of a search between rounds."""

    target: Target
    ring: Ring
    seed: int
    command: str
    start: Scheme | None
    rank: int | None
    lowest: int
    finds: list[Find] = field(default_factory=list)
    unlifted: list[Unlifted] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    round: int = 0
    interrupted: bool = False
    began: float = field(default_factory=time.perf_counter)
    gained: float = 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def done(self, rounds: int | None, seconds: float | None, count: int) -> bool:
        return (
            (rounds is not None and self.round >= rounds)
            or (seconds is not None and self.seconds >= seconds)
            or (self.rank is not None and len(self.finds) >= count)
        )

    def collect(self, walkers: list[Walker]) -> None:
        """Take what the walks found in this round, in walk order."""
        for index, walker in enumerate(walkers):
            if walker.rank < self.lowest:
                self.gained = self.seconds
            wanted = walker.rank <= self.rank if self.rank is not None else walker.rank < self.lowest
            self.lowest = min(self.lowest, walker.rank)
            if wanted:
                self.take(index, walker)
                if self.rank is not None:
                    walker.rewind()

    def take(self, index: int, walker: Walker) -> None:
        """Certify one find, and lift it if a ring other than Z2 is wanted."""
        origin = sparsified(walker.terms()).to_scheme()
        if origin.digest in self.seen:
            return
        self.seen.add(origin.digest)
        certificate = certify(origin)
        provenance = Provenance(
            kind="search",
            command=self.command,
            seed=self.seed,
            version=certificate.version,
            parents=(self.start.digest,) if self.start else (),
            relation="flip walk" if self.start else "flip walk from naive",
            remark=f"walk {index}, round {self.round}, step {walker.steps}",
            date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            seconds=round(self.seconds, 3),
        )
        origin = origin.replace(provenance=provenance)
        if self.ring is Z2:
            self.finds.append(Find(origin, certificate, origin, certificate))
            return
        lifted = lift(origin, ring=self.ring, seed=self.seed)
        if lifted.scheme is None or lifted.certificate is None:
            self.unlifted.append(Unlifted(origin, lifted.reason))
            return
        self.finds.append(Find(lifted.scheme, lifted.certificate, origin, certificate))

    def progress(self, walkers: list[Walker]) -> Progress:
        seconds = self.seconds
        flips = sum(walker.flips for walker in walkers)
        return Progress(self.round, flips, seconds, self.lowest, seconds - self.gained, len(self.finds))

    def result(self, walkers: list[Walker]) -> Result:
        ranks = Counter(walker.lowest for walker in walkers)
        flips = sum(walker.flips for walker in walkers)
        return Result(
            self.target,
            self.ring,
            self.seed,
            tuple(self.finds),
            tuple(self.unlifted),
            dict(ranks),
            self.round,
            flips,
            self.seconds,
            self.interrupted,
        )
