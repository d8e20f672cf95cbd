"""Wisdom from measurement: time the best candidates of a request on its own machine."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ...errors import PlanError, VerificationError
from ..planning.machine import Machine
from ..planning.planner import TOP, Bench, Tuned, candidates
from ..planning.strategy import Plan
from ..planning.wisdom import WisdomRecord, keep_record
from ..request import Request
from .families import machine_for, strategies


def tune(
    request: Request,
    *,
    top: int = TOP,
    rounds: int = 7,
    seed: int = 0,
    keep: bool = True,
    machine: Machine | None = None,
    on_event: Callable[[str], None] = lambda line: None,
) -> list[Tuned]:
    """Time the baseline and the `top` best candidates of a request interleaved, and store the medians; fastest first.

    Later plans of the same request class use the measurements.

    Raises:
        PlanError: the request is empty, nothing can run it, or there is no GPU.
        VerificationError: a candidate's product is wrong; nothing is stored.
        OSError: the medians cannot be stored.
    """
    bench = bench_for(request)
    machine = machine_for(request) if machine is None else machine
    if request.is_empty:
        raise PlanError(f"{request} is empty: there is nothing to measure")
    plans = candidates(request, machine, strategies(request.device, request.family), top)
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
        timed = ((one.plan.candidate.key, one.seconds, one.plan.seconds) for one in found)
        keep_record(machine.profile.id, WisdomRecord.of(request, timed))
    return sorted(found, key=lambda one: one.seconds)


BENCHES = {
    (False, True): ("cpu.bench", "CpuBench"),
    (False, False): ("cuda.bench", "CudaBench"),
    (True, True): ("exact.bench", "ExactBench"),
    (True, False): ("exact.bench", "ExactTensorBench"),
}
"""The module and class of a bench: of exact products or of others, on a processor or on a GPU."""


def bench_for(request: Request) -> Bench:
    """Return the bench (operands and timing) of a request's device.

    Raises:
        PlanError: there is no such device.
    """
    on_cpu = request.device == "cpu"
    if not on_cpu:
        from ..cuda.machine import require_device

        require_device()
    module, name = BENCHES[request.ring is not None, on_cpu]
    found: Bench = getattr(import_module(f"...{module}", __name__), name)()
    return found


def _quartiles(seconds: Sequence[float]) -> tuple[float, float]:
    lower, _, upper = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else [*seconds] * 3
    return lower, upper
