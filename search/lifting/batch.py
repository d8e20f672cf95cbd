"""Lifting of whole pools of schemes over Z2 or Z3, on several threads, with statistics of the outcomes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ...errors import PlanError
from ...schemes_db import Z2, Ring, Scheme, Z, parse_ring
from ..basis.sparsify import sparsified
from ..terms.packed import PackedTerms
from .lift import Lift, lift
from .ternary import ternary_lift


@dataclass(frozen=True)
class PoolLift:
    """The lifts of a pool, in its order; `seconds` is their total wall time."""

    origins: tuple[Scheme, ...]
    lifts: tuple[Lift, ...]
    seconds: float

    @property
    def shares(self) -> dict[str, int]:
        """Number of lifts by outcome: ternary, integer, fractional, not lifted."""
        return dict(Counter(_outcome(one) for one in self.lifts))

    @property
    def reasons(self) -> dict[str, int]:
        """Number of failed lifts by reason, most frequent first."""
        return dict(Counter(one.reason for one in self.lifts if one.scheme is None).most_common())


def lift_pool(
    schemes: Sequence[Scheme],
    *,
    ring: Ring | str = Z,
    seed: int = 0,
    jobs: int = 1,
    sparse: bool = False,
    walks: int = 0,
    signs: float = 0.0,
) -> PoolLift:
    """Lift every scheme of a pool; the lifts depend on the seed only, not on `jobs`.

    With `sparse` each is transformed to a sparse basis first, where ternary lifts are likelier, and
    `origins` are those schemes; the finds of a search are sparse already. For schemes over Z2 whose lift
    is not ternary, up to `walks` neighbours, and `signs` seconds of CP-SAT for each, are tried: see
    `ternary_lift`.

    Raises:
        PlanError: there are no schemes, one is not over Z2 or Z3, or `jobs` is below 1.
    """
    if not schemes or jobs < 1:
        raise PlanError("a pool needs a scheme over Z2 or Z3, and at least 1 job to lift it")
    over = parse_ring(ring) if isinstance(ring, str) else ring

    def work(scheme: Scheme) -> tuple[Scheme, Lift]:
        if sparse and scheme.ring is Z2:
            moved = sparsified(PackedTerms.from_scheme(scheme)).to_scheme(scheme.provenance)
            scheme = scheme if moved.digest == scheme.digest else moved
        found = lift(scheme, ring=over, seed=seed)
        short = found.scheme is None or not found.scheme.ternary
        if short and scheme.ring is Z2 and (walks > 0 or signs > 0):
            nearer = ternary_lift(scheme, walks=walks, signs=signs, seed=seed)
            found = nearer if nearer.scheme is not None and nearer.scheme.ternary else found
        return scheme, found

    begin = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        done = list(pool.map(work, schemes))
    origins, lifts = zip(*done, strict=True)
    return PoolLift(origins, lifts, time.perf_counter() - begin)


def _outcome(one: Lift) -> str:
    if one.scheme is None:
        return "not lifted"
    if one.scheme.ternary:
        return "ternary"
    return "integer" if max(one.scheme.denominators) == 1 else "fractional"
