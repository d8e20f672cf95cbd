"""The candidates of a request that are worth measuring, and what measures them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..request import Request
from .limits import exceeds_kept
from .machine import Machine
from .planner import Strategies, decide, plan_candidate, vendor_plans
from .strategy import Plan

TOP = 6
"""Default number of candidates measured in addition to the baseline."""

WITHIN = 1.15
"""Candidates are measured if their predicted seconds are at most this multiple of the baseline's."""


class Bench(Protocol):
    """Operands, checks and interleaved timing of calls on one device."""

    def operands(self, request: Request, seed: int) -> tuple[Any, Any, Any]:
        """Return random A and B, and an array for C, with the request's layouts and structures."""

    def errors(self, request: Request, a: Any, b: Any) -> Callable[[Any], float]:
        """Return a function from C = A B to its relative Frobenius error on some rows; their reference is stored."""

    def interleaved(self, calls: Mapping[str, Callable[[], object]], rounds: int) -> Mapping[str, Sequence[float]]:
        """Measure the seconds of every call, interleaved: each once per round, after an untimed round."""


@dataclass(frozen=True)
class Tuned:
    """One measured candidate: its plan, median seconds and ratio to the fastest library (above 1: faster)."""

    plan: Plan
    seconds: float
    ratio: float
    quartiles: tuple[float, float]
    error: float


def candidates(request: Request, machine: Machine, strategies: Strategies, top: int = TOP) -> list[Plan]:
    """Return the baseline's plans, one a library, and those of the `top` best candidates by prediction that can run."""
    unwise = replace(machine, wisdom=None)
    plans = vendor_plans(request, unwise, strategies)
    most = len(plans) + top
    decision = decide(request, unwise, strategies)
    baseline = decision.baseline
    for proposal in decision.proposals:
        if len(plans) >= most or (baseline.seconds and proposal.bound > WITHIN * baseline.seconds):
            break
        candidate = proposal.candidate
        if any(plan.candidate == candidate for plan in plans):
            continue
        strategy = strategies[candidate.family, candidate.strategy]
        found = plan_candidate(strategy, candidate, request, unwise)
        if isinstance(found, Plan) and (request.max_workspace is not None or not exceeds_kept(found.workspace, unwise)):
            plans.append(found)
    return plans
