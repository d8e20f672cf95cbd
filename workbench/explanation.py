"""The explanation of a decision as plain data: the plan, the reason, and the other candidates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from math import isnan
from typing import Any

from ..errors import PlanError
from ..kernels.planning.cost_model import seconds_or_none
from ..kernels.planning.limits import Margin, applying_margins
from ..kernels.planning.planner import Decision, Strategies, plan_candidate, vendor_plans
from ..kernels.planning.strategy import Candidate, Stage
from ..kernels.request import PLAIN, Layout
from ..kernels.structure import is_factored

LISTED = 8
"""Maximum number of other candidates that are priced again and shown."""


@dataclass(frozen=True)
class Considered:
    """A candidate with its seconds and bytes of workspace; `refused` is the reason why it cannot run, or None."""

    candidate: Candidate
    seconds: float | None
    ratio: float | None
    workspace: int
    refused: str | None


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


@dataclass(frozen=True)
class Explanation:
    """A decision with what it was compared with.

    `ratio` is the baseline's seconds over the plan's. `stages` are those of the baseline, then of the plan if it is
    another one; their seconds are always predictions. `margins` are those that the plan had to stay below.
    `dense_weight` compares a product by factors with that by a dense weight, if both are known.
    """

    decision: Decision
    ratio: float | None
    stages: tuple[tuple[Candidate, Stage], ...]
    margins: tuple[Margin, ...]
    considered: tuple[Considered, ...]
    dense_weight: DenseWeight | None

    @property
    def basis(self) -> str:
        """The origin of the decision's seconds: "measured", "predicted", or "unknown"."""
        return "measured" if self.decision.measured else "unknown" if self.decision.seconds is None else "predicted"

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as JSON-compatible numbers and strings."""
        decision, request, candidate = self.decision, self.decision.request, self.decision.plan.candidate
        profile = decision.machine.profile
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
            "basis": self.basis,
            "predicted_seconds": decision.plan.seconds,
            "measured_seconds": decision.seconds if decision.measured else None,
            "baseline": str(decision.baseline.candidate),
            "baseline_seconds": decision.baseline_seconds,
            "ratio": self.ratio,
            "dense_weight": self.dense_weight and {**asdict(self.dense_weight), "ratio": self.dense_weight.ratio},
            "workspace": decision.plan.workspace,
            "margins": [{"part": one.part, "where": one.text, "measured": one.measured} for one in self.margins],
            "considered": [
                {
                    **vars(one),
                    "candidate": str(one.candidate),
                    "strategy": one.candidate.strategy,
                    "method": one.candidate.method,
                }
                for one in self.considered
            ],
            "refused": [list(pair) for pair in decision.refused],
            "terms": [
                {
                    "candidate": str(candidate),
                    "level": stage.level,
                    "stage": stage.name,
                    "flops": float(stage.flops),
                    "bytes": float(stage.bytes),
                    "intensity": float(stage.intensity),
                    "seconds": stage.seconds,
                }
                for candidate, stage in self.stages
            ],
        }


def explanation(decision: Decision, strategies: Strategies) -> Explanation:
    """Explain a decision; `strategies` are those that it considered."""
    plan, baseline = decision.plan, decision.baseline
    base = decision.baseline_seconds
    stages = [(baseline.candidate, stage) for stage in baseline.stages]
    if not decision.is_baseline:
        stages += [(plan.candidate, stage) for stage in plan.stages]
    margins = () if decision.measured else applying_margins(plan.candidate.family, plan.request, plan.stages)
    return Explanation(
        decision,
        _ratio(base, decision.seconds),
        tuple(stages),
        tuple(margins),
        tuple(_considered(decision, strategies, base)),
        _dense_weight(decision, strategies),
    )


def _dense_weight(decision: Decision, strategies: Strategies) -> DenseWeight | None:
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


def _considered(decision: Decision, strategies: Strategies, base: float | None) -> Iterator[Considered]:
    for proposal in decision.proposals[:LISTED]:
        candidate = proposal.candidate
        strategy = strategies[candidate.family, candidate.strategy]
        found = plan_candidate(strategy, candidate, decision.request, decision.machine)
        bound = seconds_or_none(proposal.bound)
        if isinstance(found, str):
            bound = bound or None  # zero is the bound of what was not priced
            yield Considered(candidate, bound, _ratio(base, bound), 0, found)
            continue
        seconds = bound if decision.measured else found.seconds
        yield Considered(candidate, seconds, _ratio(base, seconds), found.workspace, None)


def _ratio(base: float | None, seconds: float | None) -> float | None:
    """Return the speedup over the baseline; 1 if it takes no time, None if a time is unknown."""
    if base is None or seconds is None:
        return None
    return base / seconds if seconds else 1.0
