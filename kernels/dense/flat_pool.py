"""The chains of a pool that a GPU executes in one pass, and their costs as one level."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

from ..cuda.flat_program import MAX_RANK
from ..identity import IdentityKey
from .pool import LevelScheme, SchemePool
from .scheme_costs import SchemeCosts

CostedChain = tuple[tuple[LevelScheme, ...], SchemeCosts]


@dataclass(frozen=True)
class FlatPool:
    """All chains of a pool, and their costs as arrays."""

    chains: tuple[tuple[LevelScheme, ...], ...]
    costs: SchemeCosts


def flat_pool(pool: SchemePool) -> FlatPool:
    """Return the chains of one, two and (4x4x4 over 2x2x2) three levels with at most 512 products."""
    return _flat_pool(IdentityKey(pool))


@lru_cache(maxsize=2)
def _flat_pool(held: IdentityKey) -> FlatPool:
    pool: SchemePool = held.held
    base = [i for i, level in enumerate(pool.entries) if not level.is_flattened]
    one: list[CostedChain] = [((pool.entries[i],), pool.costs[i]) for i in base]
    two = _products(one, one)
    cubes = [(chain, costs) for chain, costs in two if (costs.m, costs.k, costs.n) == (4, 4, 4)]
    strassens = [(chain, costs) for chain, costs in one if (costs.m, costs.k, costs.n) == (2, 2, 2)]
    every = one + two + _products(cubes, strassens)
    return FlatPool(tuple(chain for chain, _ in every), SchemeCosts.stacked([costs for _, costs in every]))


def _products(outer: list[CostedChain], inner: list[CostedChain]) -> list[CostedChain]:
    """Return every chain of an outer one over an inner one with at most MAX_RANK products."""
    pairs = itertools.product(outer, inner)
    return [((*a, *b), first @ other) for (a, first), (b, other) in pairs if first.rank * other.rank <= MAX_RANK]
