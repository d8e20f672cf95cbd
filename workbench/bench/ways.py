"""Ways to run a product that the planner considered, ready to be timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .contest import Call, Matrix

if TYPE_CHECKING:
    from ...kernels.dense.auto import Decision
    from ...kernels.dense.options import Option
    from ...kernels.planning.strategy import Plan


def decision_for(a: Matrix, b: Matrix, out: Matrix) -> Decision:
    """What `auto` decides for these matrices, with all that it considered."""
    from ...kernels.cpu.estimate import profile_for
    from ...kernels.cpu.threads import thread_count
    from ...kernels.dense.auto import decide
    from ...kernels.request import Request

    request = Request.of(a, b, out)
    return decide(request, profile_for(request), thread_count())


def considered_ways(
    decision: Decision, a: Matrix, b: Matrix, out: Matrix, wanted: Callable[[Option], bool]
) -> Iterator[tuple[str, Call]]:
    """The options that are wanted and can be run, the fastest by the model first: label and call."""
    from ...kernels.cpu.estimate import profile_for
    from ...kernels.dense.auto import program_of_chain
    from ...kernels.planning.planner import considered
    from ...kernels.planning.strategy import Candidate, Plan

    profile = profile_for(decision.request)
    for option in decision.options:
        if not option.chain or not wanted(option):
            continue
        program = program_of_chain(tuple(decision.choices.entries[i] for i in option.chain))
        candidate = Candidate(program, option.strategy, option.label(decision.choices))
        plan = considered(candidate, decision.request, profile)
        if isinstance(plan, Plan):
            yield str(candidate), _call(plan, a, b, out)


def named_way(scheme: list[str], a: Matrix, b: Matrix, out: Matrix) -> tuple[str, Call]:
    """The best way for a scheme a level.

    Raises:
        PlanError: it cannot be run.
    """
    from ...kernels import plan_for
    from ...kernels.request import Request

    plan = plan_for(Request.of(a, b, out), scheme)
    return str(plan.candidate), _call(plan, a, b, out)


def _call(plan: Plan, a: Matrix, b: Matrix, out: Matrix) -> Call:
    executor = plan.build()
    return lambda: executor.run(a, b, out)
