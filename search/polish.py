"""Flips at constant rank that lower the additions: a walk over ternary schemes, cooled by and by.

A flip turns (u, v, w) + (u, v', w') into (u, v + s v', w) + (u, v', w' - s w), so it changes the sums of two of
the three maps only. Each map's additions are estimated by a few runs of sharing.
"""

from __future__ import annotations

import math
import time

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..schemes_db import Provenance, Scheme, Z
from ..verify import certify
from .additions import LinearMap

ESTIMATE_RUNS = 6
"""Runs of sharing for each map and its transpose in an estimate."""

HOT, COLD = 1.5, 0.2
"""The temperature in additions, at the start and at the end."""

Rows = npt.NDArray[np.int64]


def polished(scheme: Scheme, *, steps: int, seconds: float | None = None, seed: int = 0) -> Scheme:
    """The scheme with the fewest estimated additions on a walk of flips from a ternary one, certified.

    The walk ends after `steps` tries or after `seconds`; without the latter it depends on the seed only.

    Raises:
        PlanError: the scheme is not over Z with coefficients -1, 0 and 1.
    """
    if scheme.ring is not Z or not scheme.ternary:
        raise PlanError(f"{scheme!r} is not ternary over Z: flips are made of such schemes only")
    rng = np.random.default_rng(seed)
    factors = [factor.dense.reshape(scheme.rank, -1).copy() for factor in scheme.factors]
    costs = [_estimate(rows, f, seed) for f, rows in enumerate(factors)]
    best, best_cost = [rows.copy() for rows in factors], sum(costs)
    begin = time.perf_counter()
    for step in range(steps):
        share = (time.perf_counter() - begin) / seconds if seconds else step / steps
        if share >= 1:
            break
        move = _flip(factors, rng)
        if move is None:
            continue
        trial = [_estimate(move[f], f, step) if f in move else costs[f] for f in range(3)]
        growth = sum(trial) - sum(costs)
        heat = HOT * (COLD / HOT) ** share
        if growth > 0 and rng.random() >= math.exp(-growth / heat):
            continue
        for f, rows in move.items():
            factors[f] = rows
        costs = trial
        if sum(costs) < best_cost:
            best, best_cost = [rows.copy() for rows in factors], sum(costs)
    return _rebuilt(scheme, best, seed)


def _estimate(rows: Rows, f: int, seed: int) -> int:
    """About how many additions a map takes, in the cheaper of its two directions."""
    matrix = rows.T if f == 2 else rows
    forth, back = LinearMap(matrix, seed, f), LinearMap(matrix.T, seed, f + 3)
    forth.improve(ESTIMATE_RUNS)
    back.improve(ESTIMATE_RUNS)
    outputs, inputs = matrix.shape
    return min(forth.additions, back.additions - outputs + inputs)


def _flip(factors: list[Rows], rng: np.random.Generator) -> dict[int, Rows] | None:
    """The two factors that a random flip changes, or None where it would leave -1, 0, 1 or make a zero."""
    f = int(rng.integers(3))
    groups: dict[bytes, list[tuple[int, int]]] = {}
    for r, row in enumerate(factors[f]):
        sign = int(row[np.flatnonzero(row)[0]])
        groups.setdefault((row * sign).tobytes(), []).append((r, sign))
    shared = [group for group in groups.values() if len(group) > 1]
    if not shared:
        return None
    group = shared[int(rng.integers(len(shared)))]
    a, b = rng.choice(len(group), 2, replace=False)
    (r, sign_r), (s, sign_s) = group[a], group[b]
    second, third = ((f + 1) % 3, (f + 2) % 3) if rng.integers(2) else ((f + 2) % 3, (f + 1) % 3)
    sign = int(rng.choice((-1, 1)))
    v, w = factors[second].copy(), factors[third].copy()
    v[r] += sign * v[s]
    # The shared factor may differ by a sign between the two terms, which the other factor takes.
    w[s] -= sign * sign_r * sign_s * w[r]
    if max(np.abs(v[r]).max(), np.abs(w[s]).max()) > 1 or not v[r].any() or not w[s].any():
        return None
    return {second: v, third: w}


def _rebuilt(scheme: Scheme, factors: list[Rows], seed: int) -> Scheme:
    m, k, n = scheme.target.shape
    u, v, w = (rows.reshape(scheme.rank, *shape) for rows, shape in zip(factors, ((m, k), (k, n), (m, n)), strict=True))
    provenance = Provenance(
        kind="search", seed=seed, parents=(scheme.digest,), relation="flips towards fewer additions"
    )
    found = Scheme.from_arrays(scheme.target, u, v, w, provenance=provenance)
    if found.digest == scheme.digest:
        return scheme
    certify(found)
    return found
