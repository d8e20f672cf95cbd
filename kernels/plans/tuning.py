"""Wisdom from measurement: time the best candidates of a request on its own machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from ...errors import PlanError
from ..planning.machine import Machine
from ..planning.tune import TOP, Bench, Tuned, candidates
from ..planning.tune import tune as tune_on
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
    known = strategies(request.device, request.family)
    return tune_on(request, machine, known, bench, top=top, rounds=rounds, seed=seed, keep=keep, on_event=on_event)


def precompile(
    requests: Iterable[Request], *, top: int = TOP, on_event: Callable[[str], None] = lambda line: None
) -> None:
    """Compile the candidates that `tune` would time for many requests of one device, in parallel if it allows it.

    Requests that nothing can run are skipped: `tune` gives the reason.

    Raises:
        PlanError: there is no GPU.
    """
    requests = list(requests)
    plans = []
    for request in requests:
        with contextlib.suppress(PlanError):
            plans += candidates(request, machine_for(request), strategies(request.device, request.family), top)
    if plans:
        bench_for(requests[0]).precompile(plans, on_event)


def bench_for(request: Request) -> Bench:
    """Return the bench (operands and timing) of a request's device.

    Raises:
        PlanError: there is no such device.
    """
    if request.ring is not None:
        from ..exact.bench import ExactBench

        if request.device == "cpu":
            return ExactBench()
        from ..cuda.machine import require_device
        from ..exact.tensor_bench import ExactTensorBench

        require_device()
        return ExactTensorBench()
    if request.device == "cpu":
        from ..cpu.bench import CpuBench

        return CpuBench()
    from ..cuda.bench import CudaBench
    from ..cuda.machine import require_device

    require_device()
    return CudaBench()
