"""The roofline checks of a dense plan."""

from __future__ import annotations

from ..planning.strategy import Plan
from .chains import Chain
from .flat_pool import FlatChain
from .given import GivenProgram
from .roofline import RooflineCheck, compute_bound, worth_it
from .scheme_costs import SchemeCosts


def roofline_checks(plan: Plan) -> list[RooflineCheck]:
    """Return Eq. 8 for the request, Eq. 9 and 10 for the plan's first combinations, if the profile has the rates."""
    request, profile = plan.request, plan.machine.profile
    if (
        not request.is_dense
        or 0 in (*request.shape, *request.batch)
        or not plan.machine.costs.knows(request.arithmetic)
    ):
        return []
    found = [compute_bound(profile, request.arithmetic, *request.shape)]
    if (costs := _first_costs(plan)) is not None:
        found += [worth_it(profile, request.arithmetic, costs, *request.shape, fused=fused) for fused in (False, True)]
    return [check for check in found if check is not None]


def _first_costs(plan: Plan) -> SchemeCosts | None:
    """Return the costs of the first level; on a GPU of all levels, which are combined in one pass."""
    source = plan.candidate.source
    if isinstance(source, FlatChain):
        return source.flat_costs
    if not isinstance(source, Chain | GivenProgram) or not (levels := source.costs):
        return None
    first, *others = levels
    if plan.request.device != "cpu":
        for one in others:
            first = first @ one
    return first
