"""Schemes of the same rank with fewer additions: simulated annealing by flips and shears over ternary schemes.

A round is a few walks that start from the best schemes so far, or from the end of a detour through a
higher rank: flips at one rank alone often reach only a small part of the graph.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from ...schemes_db import Provenance, Scheme
from ...schemes_db.costs import full_and_half
from ...verify import certify
from ..basis.shears import half_masks, shear_table
from ..elite_pool import ElitePool
from ..flipgraph.policy import Policy
from ..seeds import splitmix
from ..terms.ternary import TernaryTerms
from ..terms.ternary_words import packed, unpacked
from .linear_maps import TernaryMap

WALKS = 4
"""Walks of a round, for any number of jobs."""

ELITE = 12
"""Number of best schemes that walks start from."""

STEPS = 20_000
"""Steps of a walk."""

CAREFUL_RUNS = 300
"""Runs of sharing that determine the cost of a scheme at the end of a walk."""

DETOUR_STEPS, DETOURS = 20_000, 8
"""Steps of a detour between two checks, and the number of checks."""


def polished(
    scheme: Scheme, *, rounds: int | None = None, seconds: float | None = None, seed: int = 0, jobs: int = 1
) -> Scheme:
    """Find a scheme with fewer additions by walks from a ternary one, with no higher rank and no more full products.

    Limits are `rounds`, which makes the result depend on the seed only, or `seconds`, checked
    between rounds; the default is 10 rounds. The result is certified; it is the given scheme where nothing better was
    found.

    Raises:
        PlanError: the scheme is not over Z with coefficients -1, 0 and 1, or has a factor of more than 32
            blocks.
    """
    start = TernaryTerms.from_scheme(scheme)
    packed(start)  # raises if a factor does not fit
    limit = rounds if rounds is not None or seconds is not None else 10
    pool = ElitePool(ELITE)
    pool.offer((_careful(start, seed),), start)
    first = pool.lowest
    _cooled(start, seed, 1)  # compiles, so that the time limit covers the walks only
    begin, done = time.perf_counter(), 0
    with ThreadPoolExecutor(jobs) as threads:
        while limit is None or done < limit:
            known = list(pool)
            for cost, terms in threads.map(partial(_walk, known, seed), range(done * WALKS, (done + 1) * WALKS)):
                pool.offer((cost,), terms)
            done += 1
            if seconds is not None and time.perf_counter() - begin >= seconds:
                break
    if pool.lowest >= first:
        return scheme
    found = next(iter(pool)).to_scheme(
        Provenance(
            kind="search",
            seed=seed,
            parents=(scheme.digest,),
            relation="flips and changes of basis towards fewer additions",
            remark=f"shared additions, {done} rounds",
            seconds=round(time.perf_counter() - begin, 3),
        )
    )
    certify(found)
    return found


def _walk(known: list[TernaryTerms], seed: int, index: int) -> tuple[int, TernaryTerms]:
    """Run walk `index` from one of the known schemes, or from a detour from it; return the cost and the terms."""
    rng = np.random.default_rng((seed, index))
    terms = known[int(rng.integers(len(known)))]
    if rng.integers(2):
        terms = detour(terms, seed, index)
    terms = _cooled(terms, splitmix(seed, index), STEPS)
    return _careful(terms, index), terms


def _cooled(terms: TernaryTerms, state: int, steps: int) -> TernaryTerms:
    from .anneal_kernel import cool
    from .boyar_peralta import make_sums

    x = packed(terms)
    best = x.copy()
    inputs = np.array([kinds.size for kinds in terms.target.kind_arrays])
    sums, rng = make_sums(terms.rank, int(inputs.max())), np.array([state or 1], dtype=np.uint64)
    tables = shear_table(terms.target), half_masks(terms.target)
    cool(x, x.copy(), best, sums, inputs, *tables, steps, rng)
    return unpacked(terms.target, best)


def _careful(terms: TernaryTerms, seed: int) -> int:
    """Return the additions of a scheme, by many runs of sharing, up to a constant of target and rank."""
    total = 0
    for f, factor in enumerate(terms.dense()):
        one = TernaryMap(factor, seed, f)
        one.improve(CAREFUL_RUNS)
        total += one.additions
    return total


def detour(terms: TernaryTerms, seed: int, index: int) -> TernaryTerms:
    """Walk through higher ranks to another scheme of the same or a lower rank; return `terms` if none is found."""
    from ..flipgraph.arena import make_arena, terms_in
    from ..flipgraph.slots import BEST
    from ..flipgraph.walk import advance

    policy = Policy(plus_after=DETOUR_STEPS // 4)
    arena = make_arena(terms, seed, index, room=4)
    full = full_and_half(terms.to_scheme())[0]
    found = terms
    for _ in range(DETOURS):
        advance(arena, policy.numbers, terms.rank - 1, DETOUR_STEPS)
        lower = int(arena.counters[BEST]) < terms.rank
        now = terms_in(arena.best if lower else arena.x, arena, terms)
        # The walk ignores half products: a scheme with more full products is rejected and the walk continues.
        if now.rank <= found.rank and full_and_half(now.to_scheme())[0] <= full:
            found = now
        if lower:
            break
    return found
