"""The explanation of a decision as plain data, and the roofline inequalities of its plan.

Source of the inequalities: FalconGEMM (arXiv:2605.06057), Eq. 8 and 9. They are necessary for a scheme to gain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from math import isnan
from typing import Any

from ..errors import PlanError
from ..kernels.dense.arrangements import GivenProgram
from ..kernels.dense.chains import Chain
from ..kernels.dense.scheme_costs import RooflineCheck, SchemeCosts, compute_bound, machine_balance
from ..kernels.planning.limits import applying_margins
from ..kernels.planning.planner import Decision, Strategies, plan_candidate, vendor_plans
from ..kernels.planning.profile import Profile
from ..kernels.planning.strategy import Plan
from ..kernels.request import PLAIN, Layout
from ..kernels.structure import is_factored

LISTED = 8
"""Maximum number of other candidates that are priced again and shown."""


@dataclass(frozen=True)
class DenseWeight:
    """The library's product by the matrix that the factors make up, in place of the plan: seconds of both.

    `basis`: both are "measured" or both "predicted", so that they can be compared.
    """

    seconds: float
    factors_seconds: float
    basis: str

    @property
    def ratio(self) -> float:
        """Seconds of the dense product over those of the factors; below 1 the factors are slower."""
        return self.seconds / self.factors_seconds if self.factors_seconds else 1.0

    def __str__(self) -> str:
        what = f"{1e3 * self.seconds:.4g} ms by the library ({self.basis})"
        if self.ratio < 1:
            return f"{what}: the factors are slower, {1 / self.ratio:.3f} times its time"
        return f"{what}: the factors are {self.ratio:.3f} times as fast"


def explanation(decision: Decision, strategies: Strategies) -> dict[str, Any]:
    """Explain a decision as JSON-compatible data; `strategies` are those that it considered.

    `basis` is the origin of the decision's seconds, `ratio` the baseline's over the plan's. `terms` are the stages of
    the baseline, then of the plan if it is another one; their seconds are always predictions. `margins` are those that
    the plan had to stay below. `dense_weight`: see there.
    """
    plan, baseline, request, profile = decision.plan, decision.baseline, decision.request, decision.machine.profile
    base, candidate, dense = decision.baseline_seconds, decision.plan.candidate, dense_weight(decision, strategies)
    margins = () if decision.measured else applying_margins(candidate.family, plan.request, plan.stages)
    stages = [(one.candidate, stage) for one in (baseline, plan)[: 2 - decision.is_baseline] for stage in one.stages]
    return {
        "sizes": request.shape,
        "request": str(request),
        "dtype": request.dtype,
        "precision": request.precision,
        "device": request.device,
        "profile": profile.id,
        "source": profile.source,
        "chosen": candidate.label,
        "strategy": candidate.strategy,
        "method": candidate.method,
        "reason": decision.reason,
        "basis": "measured" if decision.measured else "unknown" if decision.seconds is None else "predicted",
        "predicted_seconds": plan.seconds,
        "measured_seconds": decision.seconds if decision.measured else None,
        "baseline": str(baseline.candidate),
        "baseline_seconds": base,
        "ratio": _ratio(base, decision.seconds),
        "dense_weight": dense and {**asdict(dense), "ratio": dense.ratio},
        "workspace": plan.workspace,
        "margins": [{"part": one.part, "where": one.text, "measured": one.measured} for one in margins],
        "considered": list(_considered(decision, strategies, base)),
        "refused": [list(pair) for pair in decision.refused],
        "terms": [
            {
                "candidate": str(candidate),
                "level": stage.level,
                "stage": stage.name,
                **{name: float(getattr(stage, name)) for name in ("flops", "bytes", "intensity")},
                "seconds": stage.seconds,
            }
            for candidate, stage in stages
        ],
    }


def dense_weight(decision: Decision, strategies: Strategies) -> DenseWeight | None:
    """Return the comparison with a dense weight; None for other products, or where either time is unknown."""
    request, wisdom = decision.request, decision.machine.wisdom
    if not is_factored(request.structures[0]):
        return None
    layouts = Layout.ROWS, *request.layouts[1:]
    dense = replace(request, structures=PLAIN, layouts=layouts, static=None, max_workspace=None, max_extra_bytes=0)
    try:
        plans = vendor_plans(dense, decision.machine, strategies)
    except PlanError:
        return None
    record = None if wisdom is None else wisdom.record(dense)
    if decision.measured and decision.seconds is not None and record is not None:
        times = [seconds for plan in plans if not isnan(seconds := record.seconds(plan.candidate.key))]
        if times:
            return DenseWeight(min(times), decision.seconds, "measured")
    predicted = [plan.seconds for plan in plans if plan.seconds is not None]
    if not predicted or decision.plan.seconds is None:
        return None
    return DenseWeight(min(predicted), decision.plan.seconds, "predicted")


def _considered(decision: Decision, strategies: Strategies, base: float | None) -> Iterator[dict[str, Any]]:
    """Yield the proposed candidates with seconds and bytes of workspace, or the reason why one cannot run."""
    for proposal in decision.proposals[:LISTED]:
        candidate = proposal.candidate
        strategy = strategies[candidate.family, candidate.strategy]
        found = plan_candidate(strategy, candidate, decision.request, decision.machine)
        seconds = None if isnan(proposal.bound) else proposal.bound
        refused = found if isinstance(found, str) else None
        if isinstance(found, str):
            seconds = seconds or None  # zero is the bound of what was not priced
        elif not decision.measured:
            seconds = found.seconds
        yield {
            "candidate": str(candidate),
            "label": candidate.label,
            "strategy": candidate.strategy,
            "method": candidate.method,
            "seconds": seconds,
            "ratio": _ratio(base, seconds),
            "workspace": 0 if isinstance(found, str) else found.workspace,
            "refused": refused,
        }


def _ratio(base: float | None, seconds: float | None) -> float | None:
    """Return the speedup over the baseline; 1 if it takes no time, None if a time is unknown."""
    if base is None or seconds is None:
        return None
    return base / seconds if seconds else 1.0


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
