"""Learning in use: `auto` runs the vendor's product, times real calls, and keeps what was faster as wisdom.

The calling thread runs products and nothing else. Threads in the background prepare lessons, ask another process, of
low priority, for the best candidates by prediction, whose code that process compiles into the disk caches, and
store decisions. Nothing is learned where LCMA_LEARN is 0, within `paused`, under deterministic algorithms of torch
and in an initialised process group: there what is known is used. It is used in gradients and while a CUDA graph is
captured, too, but classes that are met there wait for shadow calls (shadow.py).
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import os
import statistics
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Any, cast

from ..arguments import NUMBER, need
from ..errors import LcmaError, PlanError
from .beside_calls import beside_calls, run_beside_calls
from .compile_process import CONTENDERS, CompileProcess, Found
from .planning.cache import plan_cache
from .planning.machine import Machine
from .planning.planner import Strategies, plan_candidate, vendor_plans
from .planning.profile import GemmRate
from .planning.strategy import Plan, registered
from .planning.trials.clock import Clock, HostClock
from .planning.trials.lesson import LearningExecutor, Lesson
from .planning.trials.shadow_queue import LEAST_MET
from .planning.trials.trial import Trial, begun, decided_by
from .planning.tune import candidates
from .planning.wisdom import Known, TimedCandidate, WisdomRecord, class_of, keep_record, sizes_of
from .request import Request
from .shadow import Key, Learned, ShadowCalls

MOST_CLASSES, MOST_JOBS = 1024, 256
"""Classes that are remembered, of which the least recently used ones are dropped, and jobs that wait: a new class is
prepared by a later call."""

LAST_SECONDS = 5.0
"""Seconds that the end of the process waits for a thread of the background: for the compiler, or the GPU."""

LEARN = "LCMA_LEARN"
"""The environment variable that switches learning off with 0."""


class Mode(Enum):
    """What a call does with a class that is not decided: learn, or use what is known and leave the class to shadow
    calls, or use what is known."""

    LEARNS = "learns"
    DEFERS = "defers"
    FROZEN = "frozen"


class _Thread(threading.local):
    pauses = 0
    """The number of `paused` blocks that a thread is in."""

    deferrals = 0
    """The number of `deferred` blocks that a thread is in."""


_local = _Thread()


def mode() -> Mode:
    """Return what a call of the current thread does now. Every call of a layer asks."""
    if _local.pauses or os.environ.get(LEARN) == "0":
        return Mode.FROZEN
    torch = sys.modules.get("torch")
    if torch is not None:
        if _torchs_reason(torch) is not None:
            return Mode.FROZEN
        if _captures(torch):
            return Mode.DEFERS
    return Mode.DEFERS if _local.deferrals else Mode.LEARNS


def allowed() -> bool:
    """Return whether the current thread may learn from its calls now."""
    return mode() is Mode.LEARNS


def _captures(torch: Any) -> bool:
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def is_paused() -> bool:
    """Return whether the current thread is in a `paused` block."""
    return _local.pauses > 0


def frozen_reason() -> str | None:
    """Return the reason why nothing is tried in this process, whatever is called; None if there is none."""
    if os.environ.get(LEARN) == "0":
        return f"{LEARN} is 0; unset it"
    torch = sys.modules.get("torch")
    return None if torch is None else _torchs_reason(torch)


def _torchs_reason(torch: Any) -> str | None:
    if torch.are_deterministic_algorithms_enabled():
        return "torch.use_deterministic_algorithms is on, under which nothing is tried; switch it off"
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return "a process group is initialised, in which nothing is tried; learn in one process before"
    return None


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Within a with block, products of this thread use what is known, and nothing is tried."""
    _local.pauses += 1
    try:
        yield
    finally:
        _local.pauses -= 1


@contextlib.contextmanager
def deferred(learn: bool = True) -> Iterator[None]:
    """Within a with block, products of this thread use what is known, and classes that are not decided are queued.

    Without `learn` it is as `paused`.
    """
    if not learn:
        with paused():
            yield
        return
    _local.deferrals += 1
    try:
        yield
    finally:
        _local.deferrals -= 1


def learn(seconds: float = 60.0, on_event: Callable[[str], None] = lambda line: None) -> list[Learned]:
    """Decide now, by products of scratch operands, all classes of products that this process has met; return them.

    `on_event` is called with one line a class. Classes that are not decided within so many seconds stay as they are.
    For example after one step of training or one call of a model, before `torch.compile(mode="reduce-overhead")` or a
    CUDA graph captures it.

    Raises:
        PlanError: learning is switched off (LCMA_LEARN=0), torch's algorithms are deterministic, or a process group is
            initialised.
    """
    need(NUMBER, least=0, seconds=seconds)
    need(Callable, on_event=on_event)
    return learner.learn(float(seconds), on_event)


class Learner:
    """The lessons of a process."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start anew, without threads and without a process: a forked child has none of the parent's threads."""
        self._lessons: OrderedDict[Key, Lesson | None] = OrderedDict()
        self._waiting: list[Lesson] = []
        self._jobs: list[Callable[[], object]] = []
        self._condition = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._idle = False
        self._process = CompileProcess()
        self._generation = plan_cache.generation
        self._warned = False
        self._used: Callable[[Request], Plan | None] = lambda request: None
        self.shadow = ShadowCalls(self.executor, frozen_reason, self._warn)

    def defer(self, key: Key, used: Callable[[Request], Plan | None]) -> None:
        """Count a call of a class that used what is known; one that is captured stands for its replays.

        `used(request)` returns the plan of such calls.
        """
        self._used = used
        self.shadow.meet(key, 1 if _local.deferrals else LEAST_MET)

    def learn(self, seconds: float, on_event: Callable[[str], None]) -> list[Learned]:
        """See `learn`, for this learner.

        Raises:
            PlanError: nothing may be tried now.
        """
        if (torch := sys.modules.get("torch")) is not None and _captures(torch):
            raise PlanError("nothing can be learned while a CUDA graph is captured; call learn before")
        with self._condition:
            keys = [key for key, lesson in self._lessons.items() if lesson is None or not lesson.is_settled]
        return self.shadow.decide(keys, seconds, on_event)

    def executor(self, request: Request, key: Key, wait: bool = True) -> LearningExecutor | None:
        """Return the executor of a request whose class has this key.

        Without `wait`, None while the class is prepared in the background: the vendor's product is to be run.

        Raises:
            PlanError: nothing can run the request.
        """
        with self._condition:
            if self._generation != plan_cache.generation:  # a profile, wisdom, a strategy or the catalogue has changed
                self._generation = plan_cache.generation
                self._lessons = OrderedDict((k, v) for k, v in self._lessons.items() if v and not v.trial.decided)
            lesson = self._lessons.get(key)
            if lesson is None and not wait:
                if key not in self._lessons and len(self._jobs) < MOST_JOBS:
                    self._lessons[key] = None
                    self._drop_oldest()
                    self._enqueue(partial(self._prepare, key))
                return None
            if lesson is not None:
                self._lessons.move_to_end(key)
        return LearningExecutor(request, self._prepare(key) if lesson is None else lesson)

    def lessons(self) -> list[Lesson]:
        """Return the lessons of this process, the least recently used first."""
        with self._condition:
            return [lesson for lesson in self._lessons.values() if lesson is not None]

    def close(self) -> None:
        """End the process that compiles; it is started again when it is needed."""
        self._process.close()

    def end(self) -> None:
        """Store what was decided, and wait for the threads: an interpreter that ends kills them within libraries."""
        self.shadow.end()
        with self._condition:
            self._idle = True
            decided = [job for job in self._jobs if getattr(job, "func", None) == self._keep]
            self._jobs.clear()
            self._waiting.clear()
            self._condition.notify_all()
        self._process.close()
        for thread in self._threads:
            thread.join(LAST_SECONDS)
        for job in decided:
            job()

    def _enqueue(self, job: Callable[[], object]) -> None:
        """Append a short job of the background; the lock is held."""
        if not self._idle:
            self._jobs.append(job)
            self._start()

    def _start(self) -> None:
        """Start the threads with the first job, and wake them; the lock is held."""
        self._condition.notify_all()
        if not self._threads and not self._idle:
            try:
                for loop in (self._next_job, self._next_supply):
                    thread = threading.Thread(target=self._work, args=(loop,), name="lcma-learning", daemon=True)
                    thread.start()
                    self._threads.append(thread)
            except RuntimeError as error:  # no thread is to be had, or the interpreter ends: products are the vendor's
                self._idle = True
                self._jobs.clear()
                self._warn(f"learning of faster products failed: {error}")

    def _work(self, next_one: Callable[[], Callable[[], object] | None]) -> None:
        while True:
            with self._condition:
                while (job := next_one()) is None:
                    if self._idle:
                        return
                    self._condition.wait()
            try:
                job()
            except LcmaError:
                pass  # nothing can run the request: its call gives the reason
            except Exception as error:  # products go on by what is known; the thread must not end
                self._warn(f"learning of faster products failed: {type(error).__name__}: {error}")

    def _next_job(self) -> Callable[[], object] | None:
        return partial(run_beside_calls, self._jobs.pop(0)) if self._jobs else None

    def _next_supply(self) -> Callable[[], object] | None:
        """Return the supply of the waiting class that has taken most time."""
        if not self._waiting:
            return None
        lesson = max(self._waiting, key=lambda one: one.trial.spent)
        self._waiting.remove(lesson)
        return partial(self._supply, lesson)

    def _prepare(self, key: Key) -> Lesson:
        """Return the lesson of a class, with what wisdom has stored of it."""
        from .plans.families import machine_for, strategies

        request, _ = key
        machine, known = machine_for(request, measure=False), strategies(request.device)
        plans = vendor_plans(request, machine, known)
        trial = begun(len(plans))
        if machine.wisdom is not None and (near := machine.wisdom.near(request)) is not None and near.exact:
            plans, trial = _remembered(plans, near, request, machine, known)
        lesson = Lesson(request, plans, trial, _clock(request), self._decided, self._wanted)
        with self._condition:
            found = self._lessons.get(key)
            if found is None:
                self._lessons[key] = found = lesson
            self._drop_oldest()
        return found

    def _drop_oldest(self) -> None:
        """Drop the least recently used classes above the bound; the lock is held."""
        while len(self._lessons) > MOST_CLASSES:
            self._lessons.popitem(last=False)

    def _wanted(self, lesson: Lesson) -> None:
        with self._condition:
            self._waiting.append(lesson)
            self._start()

    def _supply(self, lesson: Lesson) -> None:
        """Add the contenders of a class whose code another process has compiled."""
        from .plans.families import machine_for, strategies

        request = lesson.request
        with beside_calls:
            machine, known = machine_for(request, measure=False), strategies(request.device)
            machine = _calibrated(machine, lesson)
        try:
            for found in self._process.candidates(request, machine):
                with beside_calls:
                    if (plan := _restored(found, request, machine, known)) is not None:
                        _offer(plan, lesson)
            with beside_calls:
                for plan in _registered(request, machine, known):
                    _offer(plan, lesson)
        finally:
            lesson.add([], complete=True)

    def _decided(self, lesson: Lesson) -> None:
        with self._condition:
            self._enqueue(partial(self._keep, lesson))

    def _keep(self, lesson: Lesson) -> None:
        """Store the medians of a decided class as wisdom."""
        seconds = lesson.trial.seconds()
        entries = tuple(
            TimedCandidate(*lesson.plans[i].candidate.key, each, lesson.plans[i].seconds)
            for i, each in sorted(seconds.items(), key=lambda pair: pair[1])
        )
        request, today = lesson.request, datetime.date.today().isoformat()
        if not entries or request.max_error is not None or request.max_workspace is not None:
            return  # records have no limits: what was found within them is this process's alone
        record = WisdomRecord(class_of(request), sizes_of(request), today, entries)
        try:
            keep_record(lesson.plan.machine.profile.id, record, drop_plans=self._is_outdated(lesson))
        except OSError as error:
            self._warn(f"what was learned can't be stored: {error}; set LCMA_HOME to a folder of your own")

    def _is_outdated(self, lesson: Lesson) -> bool:
        """Return whether graphs and gradients have met a class, and would go on with another plan than the winner."""
        met = any(request == lesson.request for request, _ in cast("list[Key]", self.shadow.queue.known()))
        used = self._used(lesson.request) if met else None
        both = used is not None and used.strategy.baseline and lesson.plan.strategy.baseline
        return used is not None and not both and used.candidate != lesson.plan.candidate

    def _warn(self, text: str) -> None:
        """Say one thing once a process: products are right without learning."""
        if not self._warned:
            self._warned = True
            warnings.warn(text, stacklevel=2)


def _offer(plan: Plan, lesson: Lesson) -> None:
    """Add a contender after loading its code. What cannot be compiled or run here is no contender."""
    with contextlib.suppress(Exception):
        _load(plan)
        lesson.add([plan], complete=False)


def _registered(request: Request, machine: Machine, strategies: Strategies) -> list[Plan]:
    """Return the best plans of the strategies that the user has registered: another process knows none of them."""
    own = registered(request.device)
    if not own:
        return []
    baselines = {key: strategy for key, strategy in strategies.items() if strategy.baseline}
    plans = candidates(request, machine, {**baselines, **own}, CONTENDERS)
    return [plan for plan in plans if not plan.strategy.baseline]


def _load(plan: Plan) -> None:
    """Load the compiled code of a plan, so that no call waits for it: on a GPU a kernel's first launch does."""
    executor = plan.build()
    if plan.request.device == "cuda":
        from .cuda.bench import run_once

        run_once(executor, plan.request)


def _clock(request: Request) -> Clock:
    if request.device == "cpu":
        return HostClock()
    from .cuda.event_clock import EventClock

    return EventClock()


def _remembered(
    plans: list[Plan], known: Known, request: Request, machine: Machine, strategies: Strategies
) -> tuple[list[Plan], Trial]:
    """Return the vendor's plans and the best other one of a record, and the trial that they decide.

    A library that was not measured then is still to be tried.
    """
    vendors = len(plans)
    others = [entry for entry in known.entries if not any(entry.key == plan.candidate.key for plan in plans)]
    for entry in sorted(others, key=lambda one: one.seconds):
        found = Found(entry.key, entry.predicted)
        if (plan := _restored(found, request, machine, strategies)) is not None and not plan.strategy.baseline:
            plans = [*plans, plan]
            break
    times = tuple(known.seconds(plan.candidate.key, plan.seconds) for plan in plans)
    if any(seconds != seconds for seconds in times):  # NaN: not measured
        return plans, begun(vendors, len(plans), open=False)
    return plans, decided_by(vendors, times)


def _restored(found: Found, request: Request, machine: Machine, strategies: Strategies) -> Plan | None:
    """Return the plan of a candidate that another process found; None if it cannot run here."""
    family, name, source, parameters = found.key
    strategy = strategies.get((family, name))
    candidate = None if strategy is None else strategy.restore(source, parameters, request)
    if strategy is None or candidate is None:
        return None
    plan = plan_candidate(strategy, candidate, request, machine)
    return plan if isinstance(plan, Plan) else None


def _calibrated(machine: Machine, lesson: Lesson) -> Machine:
    """Return the machine with estimated rates scaled to what the vendor's products took in calls."""
    trial, request = lesson.trial, lesson.request
    if not trial.led or request.device != "cpu" or not request.is_dense:
        return machine
    from .cpu.cost_model import CpuCostModel
    from .cpu.estimate import calibrated
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


learner = Learner()
"""The learner of the process."""

atexit.register(learner.end)


def _start_anew() -> None:
    beside_calls.forget()
    plan_cache.reset()
    learner.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
