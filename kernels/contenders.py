"""The contenders of a class of requests: the plans that wisdom knows, and those that another process has compiled.

Only threads in the background come here: the first call of a process would wait for what this file imports.
"""

from __future__ import annotations

import contextlib
import statistics
from dataclasses import replace
from operator import itemgetter

from .beside_calls import beside_calls
from .compile_process import CompileProcess
from .planning.machine import Machine
from .planning.planner import Strategies, candidates, restored, vendor_plans
from .planning.profile import GemmRate
from .planning.strategy import Plan, registered
from .planning.trials.lesson import Lesson
from .planning.trials.trial import Trial, begun, decided_by
from .planning.wisdom import WisdomRecord
from .plans.families import machine_for, strategies
from .request import Request

REGISTERED = 3
"""Most plans of strategies that the user has registered."""


def known_plans(request: Request) -> tuple[list[Plan], Trial]:
    """Return the vendor's plans of a request with what wisdom adds, and their trial, which wisdom may decide."""
    machine, known = machine_for(request, measure=False), strategies(request.device, request.family)
    plans = vendor_plans(request, machine, known)
    if machine.wisdom is not None and (record := machine.wisdom.record(request)) is not None:
        return _remembered(plans, record, request, machine, known)
    return plans, begun(len(plans))


def supply(lesson: Lesson, process: CompileProcess) -> None:
    """Add the contenders of a class to its lesson, one by one as they are compiled and loaded.

    Asked again, they are the next best by prediction.
    """
    request = lesson.request
    with beside_calls:
        machine, known = machine_for(request, measure=False), strategies(request.device, request.family)
        machine = _calibrated(machine, lesson)
    try:
        for key, seconds in process.candidates(request, machine, lesson.rounds):
            if request.device == "cpu":  # calls of a GPU lose nothing beside it
                lesson.charge(seconds)
            with beside_calls:
                _, plan = restored(key, request, machine, known)
                if isinstance(plan, Plan):
                    _offer(plan, lesson)
        with beside_calls:
            for plan in _registered(request, machine, known):
                _offer(plan, lesson)
    finally:
        lesson.add([], complete=True)


def record_of(lesson: Lesson) -> WisdomRecord | None:
    """Return the medians of a decided class as wisdom; None where nothing was measured, or within limits.

    Records have no limits: what was found within them is this process's alone.
    """
    request, seconds = lesson.request, lesson.trial.seconds()
    if not seconds or request.max_error is not None or request.max_workspace is not None:
        return None
    ranked = sorted(seconds.items(), key=itemgetter(1))
    plans = lesson.plans
    return WisdomRecord.of(request, ((plans[i].candidate.key, each, plans[i].seconds) for i, each in ranked))


def _offer(plan: Plan, lesson: Lesson) -> None:
    """Add a contender after loading its code. What cannot be compiled or run here is no contender."""
    if any(plan.candidate == one.candidate for one in lesson.plans):
        return
    with contextlib.suppress(Exception):
        _load(plan)
        lesson.add([plan], complete=False)


def _registered(request: Request, machine: Machine, strategies: Strategies) -> list[Plan]:
    """Return the best plans of the strategies that the user has registered: another process knows none of them."""
    own = registered(request.device)
    if not own:
        return []
    baselines = {key: strategy for key, strategy in strategies.items() if strategy.baseline}
    plans = candidates(request, machine, {**baselines, **own}, REGISTERED)
    return [plan for plan in plans if not plan.strategy.baseline]


def _load(plan: Plan) -> None:
    """Load the compiled code of a plan, so that no call waits for it: on a GPU a kernel's first launch does."""
    executor = plan.build()
    if plan.request.device == "cuda":
        from .cuda.bench import run_once

        run_once(executor, plan.request)


def _remembered(
    plans: list[Plan], record: WisdomRecord, request: Request, machine: Machine, strategies: Strategies
) -> tuple[list[Plan], Trial]:
    """Return the vendor's plans and the best other one of a record, and the trial that they decide.

    A library that was not measured then is still to be tried.
    """
    vendors = len(plans)
    others = [entry for entry in record.entries if not any(entry.key == plan.candidate.key for plan in plans)]
    for entry in sorted(others, key=lambda one: one.seconds):
        _, plan = restored(entry.key, request, machine, strategies)
        if isinstance(plan, Plan) and not plan.strategy.baseline:
            plans = [*plans, plan]
            break
    times = tuple(record.seconds(plan.candidate.key) for plan in plans)
    if any(seconds != seconds for seconds in times):  # NaN: not measured
        return plans, begun(vendors, len(plans), open=False)
    return plans, decided_by(vendors, times)


def _calibrated(machine: Machine, lesson: Lesson) -> Machine:
    """Return the machine with estimated rates scaled to what the vendor's products took in calls."""
    trial, request = lesson.trial, lesson.request
    if not trial.led or request.device != "cpu" or not request.is_dense:
        return machine
    from .cpu.cost_model import CpuCostModel
    from .cpu.machine import calibrated
    from .dtypes import dtype_of

    seconds = trial.seconds() or {trial.leader: statistics.median(trial.led)}
    flops = 2.0 * dtype_of(request.dtype).parts ** 2 * request.m * request.k * request.n * request.items
    timed = [
        GemmRate(request.arithmetic, *request.shape, flops / seconds[i], "whole", lesson.plans[i].library)
        for i in range(trial.vendors)
        if i in seconds
    ]
    profile = calibrated(machine.profile, timed)
    return replace(machine, profile=profile, costs=CpuCostModel(profile, machine.threads))
