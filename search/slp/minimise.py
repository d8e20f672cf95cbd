"""Search for the program with the fewest additions among many schemes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ...errors import PlanError
from ...schemes_db import Scheme, Z
from ...schemes_db.costs import additions
from ..terms.words import HALF_BITS
from .additions import Additions, fewer_additions
from .anneal import polished

SCREEN_RUNS = 40
"""Screening runs of every scheme of a pool, in the order of additions without sharing, for up to half the time."""

FINALISTS = 4
"""Schemes that share the rest of the time."""

WALK_SHARE = 0.8
"""Share of a finalist's time that is spent on walks, with `flips`."""


def fewest_additions(
    schemes: Sequence[Scheme], *, seconds: float = 10.0, seed: int = 0, jobs: int = 1, flips: bool = False
) -> Additions:
    """Return the best program of a pool of schemes: all are screened, the best few get more runs.

    With `flips` the ternary ones among these are first replaced, by flips and changes of basis that
    lower the additions: the program is then of another scheme of the same rank, certified.

    Raises:
        PlanError: there are no schemes, or one has coefficients that sharing does not handle.
    """
    if not schemes:
        raise PlanError("no schemes to work on: name some, or a run folder with finds over Z or Q")
    fewer_additions(schemes[0], runs=1)  # compiles, so that the time limit excludes it
    begin, screened = time.perf_counter(), []
    for scheme in sorted(schemes, key=additions):
        screened.append(fewer_additions(scheme, runs=SCREEN_RUNS, seed=seed))
        if time.perf_counter() - begin > seconds / 2:
            break
    screened.sort(key=lambda result: result.count)
    finalists = screened[:FINALISTS]
    rest = max(0.0, seconds - (time.perf_counter() - begin)) / len(finalists)
    longer = []
    for result in finalists:
        scheme, left = result.scheme, rest
        blocks = max(kinds.size for kinds in scheme.target.kind_arrays)
        if flips and scheme.ring is Z and scheme.ternary and blocks <= HALF_BITS:
            scheme = polished(scheme, seconds=rest * WALK_SHARE, seed=seed, jobs=jobs)
            left = rest * (1 - WALK_SHARE)
        longer.append(fewer_additions(scheme, seconds=left, seed=seed))
    return min([*longer, *screened], key=lambda result: result.count)
