"""The Pareto rule by which the catalogue stores schemes of one target: their costs, and dominance."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from . import costs
from .display import line
from .scheme import Scheme
from .straightline import program_of

CSE_LIMIT = 3_000
"""Nonzeros up to which the additions after sharing are counted when a scheme is added."""

POLICIES = ("never", "improved", "distinct")
"""never: no scheme replaces another. improved: a Pareto frontier. distinct: one of those not distinguished."""


@dataclass(frozen=True)
class CatalogueRow:
    """One row of the catalogue, without the coefficients."""

    digest: str
    name: str
    target: str
    ring: str
    rank: int
    full_products: int
    half_products: int
    additions: int
    additions_cse: int | None
    nonzeros: int
    growth: float
    ternary: bool
    origin: str
    added: str

    def __repr__(self) -> str:
        return line(f"{self.target}:{self.rank} over {self.ring} {self.name or self.digest[:12]}, {self.origin}")

    @property
    def products(self) -> float:
        """Full products and half the half ones."""
        return self.full_products + self.half_products / 2

    @property
    def merits(self) -> tuple[float, ...]:
        """The objectives of the Pareto frontier, all minimized: rank, products, additions and growth factor."""
        return self.rank, self.products, self.additions, self.growth

    @property
    def figures(self) -> tuple[float, ...]:
        """The same with additions after sharing, in which two schemes that are the same but for a basis may differ."""
        return *self.merits, self.additions if self.additions_cse is None else self.additions_cse


def now() -> str:
    """The present second in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def entry_of(scheme: Scheme, origin: str, shared: int | None = None) -> CatalogueRow:
    """The row of a scheme; `shared` is its count of additions after sharing where that is known."""
    full, half = costs.full_and_half(scheme)
    nonzeros = sum(costs.nonzeros(scheme))
    if shared is None and nonzeros <= CSE_LIMIT and not scheme.gaussian:
        shared = program_of(scheme).additions
    return CatalogueRow(
        scheme.digest,
        scheme.name,
        scheme.target.name,
        scheme.ring.name,
        scheme.rank,
        full,
        half,
        costs.additions(scheme),
        shared,
        nonzeros,
        costs.growth_factor(scheme),
        scheme.ternary,
        origin,
        now(),
    )
