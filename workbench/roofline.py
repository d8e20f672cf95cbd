"""The roofline inequalities of a plan: necessary conditions for its scheme to gain.

Source: FalconGEMM (arXiv:2605.06057), Eq. 8 and 9.
"""

from __future__ import annotations

from ..kernels.dense.chains import Chain
from ..kernels.dense.given import GivenProgram
from ..kernels.dense.roofline import RooflineCheck, compute_bound, machine_balance
from ..kernels.dense.scheme_costs import SchemeCosts
from ..kernels.planning.profile import Profile
from ..kernels.planning.strategy import Plan


def worth_it(profile: Profile, dtype: str, costs: SchemeCosts, m: int, k: int, n: int) -> RooflineCheck | None:
    """Eq. 9: saved operations relative to traffic."""
    most = machine_balance(profile, dtype, m, k, n)
    if most is None:
        return None
    gm, gk, gn, rank = (int(x) for x in (costs.m, costs.k, costs.n, costs.rank))
    saved = 2.0 * m * n * k * (1 - rank / (gm * gk * gn))
    moved = m * k * (1 + rank / (gm * gk)) + n * k * (1 + rank / (gk * gn)) + m * n * (1 + rank / (gm * gn))
    return RooflineCheck("Eq. 9", saved / max(moved, 1), most)


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
