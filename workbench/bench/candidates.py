"""Candidates that the planner proposed for a product, ready to be timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from .cpu_products import Call, Matrix

if TYPE_CHECKING:
    from ...kernels import Candidate, Decision, Plan


def decided(a: Matrix, b: Matrix, out: Matrix) -> Decision:
    """Return the decision of `auto` for these matrices, with all proposals."""
    from ...kernels import Request, decision_for

    return decision_for(Request.of(a, b, out))


def proposed_plans(decision: Decision, wanted: Callable[[Candidate], bool]) -> Iterator[Plan]:
    """The plans of the proposed candidates that are wanted and can run, least predicted first."""
    from ...kernels import Plan, strategies
    from ...kernels.planning.planner import plan_candidate

    known = strategies(decision.request.device)
    for candidate in (proposal.candidate for proposal in decision.proposals):
        if wanted(candidate):
            strategy = known[candidate.family, candidate.strategy]
            plan = plan_candidate(strategy, candidate, decision.request, decision.machine)
            if isinstance(plan, Plan):
                yield plan


def proposed_calls(
    decision: Decision, a: Matrix, b: Matrix, out: Matrix, wanted: Callable[[Candidate], bool] = lambda _: True
) -> Iterator[tuple[str, Call]]:
    """Label and call of the proposed candidates of schemes that are wanted and can run, least predicted first."""
    for plan in proposed_plans(decision, lambda candidate: candidate.source is not None and wanted(candidate)):
        yield str(plan.candidate), call_of(plan, a, b, out)


def named_call(scheme: Sequence[str], a: Matrix, b: Matrix, out: Matrix) -> tuple[str, Call]:
    """The best candidate for a scheme a level.

    Raises:
        PlanError: it cannot be run.
    """
    from ...kernels import Request, plan_for

    plan = plan_for(Request.of(a, b, out), scheme)
    return str(plan.candidate), call_of(plan, a, b, out)


def call_of(plan: Plan, a: Matrix, b: Matrix, out: Matrix) -> Call:
    """A plan's executor on these matrices."""
    executor = plan.build()
    return lambda: executor.run(a, b, out)
