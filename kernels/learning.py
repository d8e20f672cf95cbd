"""Learning in use: `auto` runs the vendor's product, times real calls, and keeps what was faster as wisdom.

The calling thread runs products and nothing else. Threads in the background prepare lessons, ask another process, of
low priority, for the best candidates by prediction, whose code that process compiles into the disk caches, and
store decisions; what they need is imported there (contenders.py), for the first call would wait for it. Nothing is
learned where LCMA_LEARN is 0, within `paused`, under deterministic algorithms of torch and in an initialised process
group: there what is known is used. It is used in gradients and while a CUDA graph is captured, too, but classes that
are met there wait for shadow calls (shadow.py).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from ..arguments import NUMBER, need
from ..errors import LcmaError, PlanError
from .beside_calls import beside_calls
from .cpu.blas_threads import SHORTEST, sleep_soon
from .planning.cache import plan_cache
from .planning.trials.lesson import Clock, HostClock, LearningExecutor, Lesson
from .request import Request
from .shadow import LAST_SECONDS, LEAST_MET, Key, Learned, ShadowCalls

if TYPE_CHECKING:
    from .compile_process import CompileProcess
    from .planning.strategy import Plan

MOST_CLASSES, MOST_JOBS = 1024, 256
"""Classes that are remembered, of which the least recently used ones are dropped, and jobs that wait: a new class is
prepared by a later call."""

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
    if _local.pauses or frozen_reason() is not None:
        return Mode.FROZEN
    torch = sys.modules.get("torch")
    return Mode.DEFERS if _local.deferrals or (torch is not None and _captures(torch)) else Mode.LEARNS


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
    if torch is None:
        return None
    if torch.are_deterministic_algorithms_enabled():
        return "torch.use_deterministic_algorithms is on, under which nothing is tried; switch it off"
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return "a process group is initialised, in which nothing is tried; learn in one process before"
    return None


@contextlib.contextmanager
def deferred(learn: bool = True) -> Iterator[None]:
    """Within a with block, products of this thread use what is known, and classes that are not decided are queued.

    Without `learn` it is as `paused`.
    """
    kind = "deferrals" if learn else "pauses"
    setattr(_local, kind, getattr(_local, kind) + 1)
    try:
        yield
    finally:
        setattr(_local, kind, getattr(_local, kind) - 1)


def paused() -> contextlib.AbstractContextManager[None]:
    """Within a with block, products of this thread use what is known, and nothing is tried."""
    return deferred(learn=False)


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
    if (torch := sys.modules.get("torch")) is not None and _captures(torch):
        raise PlanError("nothing can be learned while a CUDA graph is captured; call learn before")
    return learner.shadow.decide(learner.undecided(), float(seconds), on_event)


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
        self._process: CompileProcess | None = None
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

    def undecided(self) -> list[Key]:
        """Return the classes that this process has met and not decided."""
        with self._condition:
            return [key for key, lesson in self._lessons.items() if lesson is None or not lesson.is_settled]

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

    def compiler_stopped(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which the process that compiles stands still."""
        return contextlib.nullcontext() if self._process is None else self._process.stopped()

    def close(self) -> None:
        """End the process that compiles; it is started again when it is needed."""
        if self._process is not None:
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
        self.close()
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
                for loop in ((self._next_job, beside_calls), (self._next_supply, contextlib.nullcontext())):
                    thread = threading.Thread(target=self._work, args=loop, name="lcma-learning", daemon=True)
                    thread.start()
                    self._threads.append(thread)
            except RuntimeError as error:  # no thread is to be had, or the interpreter ends: products are the vendor's
                self._idle = True
                self._jobs.clear()
                self._warn(f"learning of faster products failed: {error}")

    def _work(
        self, next_one: Callable[[], Callable[[], object] | None], beside: contextlib.AbstractContextManager[None]
    ) -> None:
        while True:
            with self._condition:
                while (job := next_one()) is None:
                    if self._idle:
                        return
                    self._condition.wait()
            try:
                with beside:
                    job()
            except LcmaError:
                pass  # nothing can run the request: its call gives the reason
            except Exception as error:  # products go on by what is known; the thread must not end
                self._warn(f"learning of faster products failed: {type(error).__name__}: {error}")

    def _next_job(self) -> Callable[[], object] | None:
        return self._jobs.pop(0) if self._jobs else None

    def _next_supply(self) -> Callable[[], object] | None:
        """Return the supply of the waiting class that has taken most time."""
        if not self._waiting:
            return None
        lesson = max(self._waiting, key=lambda one: one.trial.spent)
        self._waiting.remove(lesson)
        return partial(self._supply, lesson)

    def _prepare(self, key: Key) -> Lesson:
        """Return the lesson of a class, with what wisdom has stored of it."""
        from .contenders import known_plans

        plans, trial = known_plans(key[0])
        lesson = Lesson(key[0], plans, trial, _clock(key[0]), self._decided, self._wanted)
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
        if lesson.request.device == "cpu":
            sleep_soon(SHORTEST)  # else threads that spin between products leave the compile process no time
        with self._condition:
            self._waiting.append(lesson)
            self._start()

    def _supply(self, lesson: Lesson) -> None:
        """Add the contenders of a class whose code another process has compiled."""
        from .compile_process import CompileProcess
        from .contenders import supply

        self._process = self._process or CompileProcess()
        supply(lesson, self._process)

    def _decided(self, lesson: Lesson) -> None:
        if lesson.request.device == "cpu":
            sleep_soon()
        with self._condition:
            self._enqueue(partial(self._keep, lesson))

    def _keep(self, lesson: Lesson) -> None:
        """Store the medians of a decided class as wisdom."""
        from .contenders import record_of
        from .planning.wisdom import keep_record

        if (record := record_of(lesson)) is None:
            return
        try:
            keep_record(lesson.plan.machine.profile.id, record, drop_plans=self._is_outdated(lesson))
        except OSError as error:
            self._warn(f"what was learned can't be stored: {error}; set LCMA_HOME to a folder of your own")

    def _is_outdated(self, lesson: Lesson) -> bool:
        """Return whether graphs and gradients have met a class, and would go on with another plan than the winner."""
        met = any(request == lesson.request for request, _ in self.shadow.queue.known())
        used = self._used(lesson.request) if met else None
        both = used is not None and used.strategy.baseline and lesson.plan.strategy.baseline
        return used is not None and not both and used.candidate != lesson.plan.candidate

    def _warn(self, text: str) -> None:
        """Say one thing once a process: products are right without learning."""
        if not self._warned:
            self._warned = True
            warnings.warn(text, stacklevel=2)


def _clock(request: Request) -> Clock:
    if request.device == "cpu":
        return HostClock()
    from .cuda.clock import EventClock

    return EventClock()


learner = Learner()
"""The learner of the process."""

atexit.register(learner.end)


def _start_anew() -> None:
    beside_calls.forget()
    plan_cache.reset()
    learner.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
