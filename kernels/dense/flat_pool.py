"""Chains of schemes that a GPU executes in one pass: their costs as one level, and all chains of a pool."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from ..cuda.flat_program import MAX_RANK
from ..identity import IdentityKey
from .chains import Levels
from .pool import LevelScheme, SchemePool
from .scheme_costs import SchemeCosts, costs_of


@dataclass(frozen=True)
class FlatChain(Levels):
    """Levels that are executed in one pass.

    `known` are the costs of the tensor product of all levels, None if they have to be computed.
    """

    known: SchemeCosts | None = field(default=None, compare=False, repr=False)

    @cached_property
    def flat_costs(self) -> SchemeCosts:
        """The costs of all levels as one level."""
        if self.known is not None:
            return self.known
        first, *others = (costs_of(level.scheme) for level in self.levels)
        for one in others:
            first = first @ one
        return first


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
    one = [((pool.entries[i],), pool.costs[i]) for i in base]
    two = [
        ((*outer, *inner), costs @ other)
        for outer, costs in one
        for inner, other in one
        if costs.rank * other.rank <= MAX_RANK
    ]
    cubes = [(chain, costs) for chain, costs in two if (costs.m, costs.k, costs.n) == (4, 4, 4)]
    strassens = [(chain, costs) for chain, costs in one if (costs.m, costs.k, costs.n) == (2, 2, 2)]
    three = [
        ((*outer, *inner), costs @ other)
        for outer, costs in cubes
        for inner, other in strassens
        if costs.rank * other.rank <= MAX_RANK
    ]
    every = one + two + three
    return FlatPool(tuple(chain for chain, _ in every), SchemeCosts.stacked([costs for _, costs in every]))
