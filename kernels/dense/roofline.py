"""Roofline inequalities: necessary conditions for a scheme to gain.

Source: FalconGEMM (arXiv:2605.06057), Eq. 8 and 9.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..dtypes import dtype_of
from ..planning.profile import Profile
from ..planning.strategy import Plan
from .chains import Chain
from .given import GivenProgram
from .scheme_costs import SchemeCosts


@dataclass(frozen=True)
class RooflineCheck:
    """An inequality with its two sides: arithmetic intensity, and the machine's operations per element moved."""

    name: str
    left: float
    right: float

    @property
    def holds(self) -> bool:
        return self.left > self.right

    def __str__(self) -> str:
        return f"{self.name}: {self.left:.1f} {'>' if self.holds else '<='} {self.right:.1f} flop/element"


def _balance(profile: Profile, dtype: str, m: int, k: int, n: int) -> float | None:
    """Return FLOPS_x / beta, with beta in elements per second."""
    rate, bandwidth = profile.gemm_rate(dtype, m, k, n), profile.bandwidth or profile.combine_rate
    if rate is None or bandwidth is None:
        return None
    return rate / (bandwidth / dtype_of(dtype).numpy.itemsize)


def compute_bound(profile: Profile, dtype: str, m: int, k: int, n: int) -> RooflineCheck | None:
    """Eq. 8: if it does not hold the classical product is memory-bound, and no scheme can gain."""
    balance = _balance(profile, dtype, m, k, n)
    if balance is None:
        return None
    return RooflineCheck("Eq. 8", 2.0 * m * n * k / max(m * k + n * k + m * n, 1), balance)


def worth_it(profile: Profile, dtype: str, costs: SchemeCosts, m: int, k: int, n: int) -> RooflineCheck | None:
    """Eq. 9: saved operations relative to traffic."""
    balance = _balance(profile, dtype, m, k, n)
    if balance is None:
        return None
    gm, gk, gn, rank = (int(x) for x in (costs.m, costs.k, costs.n, costs.rank))
    saved = 2.0 * m * n * k * (1 - rank / (gm * gk * gn))
    moved = m * k * (1 + rank / (gm * gk)) + n * k * (1 + rank / (gk * gn)) + m * n * (1 + rank / (gm * gn))
    return RooflineCheck("Eq. 9", saved / max(moved, 1), balance)


def roofline_checks(plan: Plan) -> list[RooflineCheck]:
    """Return Eq. 8 for the request and Eq. 9 for the plan's first combinations, if the profile has the rates."""
    request, profile, dtype = plan.request, plan.machine.profile, plan.request.arithmetic
    if not request.is_dense or request.is_empty or not plan.machine.costs.knows(dtype):
        return []
    found = [compute_bound(profile, dtype, *request.shape)]
    if (costs := _first_costs(plan)) is not None:
        found.append(worth_it(profile, dtype, costs, *request.shape))
    return [check for check in found if check is not None]


def _first_costs(plan: Plan) -> SchemeCosts | None:
    """Return the costs of the first level; on a GPU of all levels, which are combined in one pass."""
    source = plan.candidate.source
    if not isinstance(source, Chain | GivenProgram):
        return None
    if plan.request.device != "cpu":
        return source.flat_costs
    return source.costs[0] if source.costs else None
