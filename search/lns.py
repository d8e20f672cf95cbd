"""Large neighbourhood search: the best scheme's products and those of walks near it, recombined, again and again.

Source: the way of the ECA and RXTX authors, who recombine products that a search has sampled; here
walks of flips do the sampling.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from ..errors import PlanError
from ..schemes_db import Certificate, Scheme
from ..schemes_db.costs import full_and_half
from ..verify import certify
from .polish import detour
from .recombining import MAX_PRODUCTS, distinct_products, recombine
from .ternary import TernaryTerms

WALKS = 6
"""Walks whose products join those of the incumbent in a round."""

MODEL_SECONDS = 5.0
"""Deterministic seconds of the solver in a round."""


@dataclass(frozen=True)
class Neighbourhood:
    """The best scheme of a search, its certificate, the rounds made, and the cost F + H/2 after each."""

    scheme: Scheme
    certificate: Certificate
    rounds: int
    costs: tuple[float, ...]


def lns(start: Scheme, *, rounds: int | None = None, seconds: float | None = None, seed: int = 0) -> Neighbourhood:
    """A scheme of the target of a ternary one that costs at most as much, a half product counting 1/2.

    In a round, walks leave the incumbent and come back to its rank; CP-SAT puts the cheapest scheme
    together from all products, and one as cheap takes the incumbent's place. Limits are `rounds`,
    which makes the result depend on the seed only, or `seconds`, looked at between rounds.

    Raises:
        PlanError: nothing limits the search, the start is not ternary over Z, or it has too many products.
    """
    if rounds is None and seconds is None:
        raise PlanError("nothing limits the search: give rounds or seconds")
    if start.rank > MAX_PRODUCTS:
        raise PlanError(f"{start!r} has too many products: a model takes {MAX_PRODUCTS}")
    terms = TernaryTerms.from_scheme(start)  # refuses what is not ternary
    best, certificate = start, certify(start)
    begin, done, costs = time.perf_counter(), 0, [_cost(start)]
    rng = np.random.default_rng(seed)
    while rounds is None or done < rounds:
        pool = [best]
        for _ in range(WALKS):
            walked = detour(terms, int(rng.integers(1 << 62)), done).to_scheme()
            if len(distinct_products([*pool, walked])) <= MAX_PRODUCTS:
                pool.append(walked)
        found = recombine(pool, seconds=MODEL_SECONDS, seed=seed)
        if _cost(found.scheme) <= costs[-1] and found.scheme != best:
            provenance = replace(
                found.scheme.provenance, parents=(start.digest,), relation="large neighbourhood search", seed=seed
            )
            best, certificate = found.scheme.replace(provenance=provenance), found.certificate
            terms = TernaryTerms.from_scheme(best)
        costs.append(_cost(best))
        done += 1
        if seconds is not None and time.perf_counter() - begin >= seconds:
            break
    return Neighbourhood(best, certificate, done, tuple(costs[1:]))


def _cost(scheme: Scheme) -> float:
    full, half = full_and_half(scheme)
    return full + half / 2
