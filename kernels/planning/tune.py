"""Measurement of the best candidates of a request, so that plans are based on times instead of predictions."""

from __future__ import annotations

import contextlib
import datetime
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ...errors import PlanError, VerificationError
from ..request import Request
from .limits import exceeds_kept
from .machine import Machine
from .planner import Strategies, decide, plan_candidate, vendor_plans
from .strategy import Plan
from .wisdom import TimedCandidate, WisdomRecord, class_of, keep_record, sizes_of

TOP = 6
"""Default number of candidates measured in addition to the baseline."""

WITHIN = 1.15
"""Candidates are measured if their predicted seconds are at most this multiple of the baseline's."""


class Bench(Protocol):
    """Operands, checks and interleaved timing of calls on one device."""

    def operands(self, request: Request, seed: int) -> tuple[Any, Any, Any]:
        """Return random A and B, and an array for C, with the request's layouts and structures."""

    def precompile(self, plans: Sequence[Plan], on_event: Callable[[str], None]) -> None:
        """Compile the kernels of many plans in parallel, if building a plan does not."""

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


def tune(
    request: Request,
    machine: Machine,
    strategies: Strategies,
    bench: Bench,
    *,
    top: int = TOP,
    rounds: int = 7,
    seed: int = 0,
    keep: bool = True,
    on_event: Callable[[str], None] = lambda line: None,
) -> list[Tuned]:
    """Time the baseline and the best candidates interleaved, and store the medians for later plans; fastest first.

    Raises:
        PlanError: the request is empty, or nothing can run it.
        VerificationError: a candidate's product is wrong; nothing is stored.
        OSError: the medians cannot be stored.
    """
    if request.is_empty:
        raise PlanError(f"{request} is empty: there is nothing to measure")
    plans = candidates(request, machine, strategies, top)
    a, b, out = bench.operands(request, seed)
    calls: dict[str, Callable[[], object]] = {}
    built: dict[str, Plan] = {}
    errors: dict[str, float] = {}
    error_of = bench.errors(request, a, b)
    for plan in plans:
        name = str(plan.candidate)
        on_event(f"compiling {name}")
        with contextlib.suppress(PlanError, MemoryError):
            executor: Any = plan.build()
            errors[name] = error_of(executor.run(a, b, out))
            left = a
            if request.max_extra_bytes and request.static == "A":  # the dense matrix would be computed once
                left = executor.prepare(a)
            calls[name] = lambda executor=executor, left=left: executor.run(left, b, out)  # type: ignore[misc]
            built[name] = plan
    vendors = [name for name, plan in built.items() if plan.strategy.baseline]
    if not vendors:
        raise PlanError(f"{request} cannot be run: there is too little memory for its baseline")
    limit = 64 * max(min(errors[name] for name in vendors), 1e-16)
    for name, error in errors.items():
        if not error <= max(limit, 1e-12):
            raise VerificationError(f"{name} came out wrong: relative error {error:.1e}; nothing was stored")
    on_event(f"timing {len(calls)} candidates")
    samples = bench.interleaved(calls, rounds)
    medians = {name: statistics.median(seconds) for name, seconds in samples.items()}
    base = min(vendors, key=medians.__getitem__)
    found = [
        Tuned(built[name], medians[name], medians[base] / medians[name], _quartiles(samples[name]), errors[name])
        for name in calls
    ]
    if keep:
        entries = tuple(TimedCandidate(*one.plan.candidate.key, one.seconds, one.plan.seconds) for one in found)
        today = datetime.date.today().isoformat()
        keep_record(machine.profile.id, WisdomRecord(class_of(request), sizes_of(request), today, entries))
    return sorted(found, key=lambda one: one.seconds)


def _quartiles(seconds: Sequence[float]) -> tuple[float, float]:
    lower, _, upper = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else [*seconds] * 3
    return lower, upper
