"""Shadow calls: products of scratch operands that decide the classes which CUDA graphs and gradients have met.

There a call uses what is known, and nothing is tried. Its class waits in a queue until the process is idle, or
`lcma.learn()` is called: then the class's own lesson runs on scratch operands, by the same trial as real calls, and
its decision is stored as the same wisdom. A captured graph keeps the plan that it was captured with.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import LcmaError, PlanError
from .cpu.threads import thread_count
from .planning.cache import plan_cache
from .planning.trials.lesson import LearningExecutor, Lesson
from .precision import TF32
from .request import Request

if TYPE_CHECKING:
    from .planning.strategy import Executor

MOST_MET = 256
"""Classes that are remembered, decided ones included; beyond them the least recently met ones are dropped."""

LEAST_MET = 2
"""Calls of a class before it is decided: what is multiplied once has nothing to gain."""

IDLE_SECONDS, IDLE_PART = 0.5, 0.1
"""The process is idle if for so many seconds no product was looked up, and its threads used at most this part of one
processor."""

SHADOW_PART, SHADOW_SECONDS, SITTING = 0.02, 5.0, 2.0
"""Bound of the seconds of all shadow calls: a part of the seconds of the process, and a constant.

Calls start if SITTING seconds are left: drawing operands may take as long as multiplying them.
"""

SCRATCH_PART = 0.25
"""Part of the free memory that scratch operands, the workspace and the result of a product may take."""

DRAWN = 3
"""Bytes of operands while they are drawn, over those of A, B and C: random numbers are drawn in float64."""

PAUSE = 0.02
"""Seconds between looks at a class whose candidates are compiled."""

LAST_SECONDS = 5.0
"""Seconds that the end of the process waits for a thread of the background: for the compiler, or the GPU."""

Key = tuple[Request, int]
"""The class of a request, and the number of threads or the GPU's index."""


class ShadowQueue:
    """Classes by key with the number of calls that met them; thread-safe. The class met last is decided first."""

    def __init__(self) -> None:
        self._met: OrderedDict[Key, int | None] = OrderedDict()
        self._lock = threading.Lock()

    def meet(self, key: Key, calls: int = 1) -> bool:
        """Count calls of a class; return whether it waits to be decided."""
        with self._lock:
            met = self._met.pop(key, 0)
            self._met[key] = met = None if met is None else met + calls
            while len(self._met) > MOST_MET:
                self._met.popitem(last=False)
        return met is not None and met >= LEAST_MET

    def waiting(self) -> list[Key]:
        """Return the classes that are to be decided, the latest first."""
        with self._lock:
            return [key for key, met in reversed(self._met.items()) if met is not None and met >= LEAST_MET]

    def settle(self, key: Key) -> None:
        """Record that a class is decided: it does not wait again."""
        with self._lock:
            if key in self._met:
                self._met[key] = None

    def forget(self, key: Key) -> None:
        """Drop a class that could not be decided; it waits again after as many calls."""
        with self._lock:
            self._met.pop(key, None)

    def known(self) -> list[Key]:
        """Return all classes, decided ones included."""
        with self._lock:
            return list(self._met)


def may_start(spent: float, elapsed: float) -> bool:
    """Return whether shadow calls may start that have taken `spent` of the process's `elapsed` seconds."""
    return may_go_on(spent + SITTING, elapsed)


def may_go_on(spent: float, elapsed: float) -> bool:
    """Return whether a further shadow call may be made."""
    return spent <= SHADOW_PART * elapsed + SHADOW_SECONDS


def is_idle(called: bool, processor: float, elapsed: float) -> bool:
    """Return whether a process was idle in `elapsed` seconds, of which it used a processor for `processor` seconds."""
    return not called and elapsed >= IDLE_SECONDS and processor <= IDLE_PART * elapsed


@dataclass(frozen=True)
class Learned:
    """A class that was decided: its request, the winner, and the vendor's median seconds over the winner's."""

    request: Request
    winner: str
    ratio: float

    def __str__(self) -> str:
        return f"{self.request}: {self.winner}, {self.ratio:.3f} times as fast as the library's product"


class ShadowCalls:
    """The shadow calls of a process.

    `executor(request, key)` returns the executor of a class's lesson, `frozen()` the reason why nothing may be tried
    now, or None, and `warn(text)` reports a failure.
    """

    def __init__(
        self,
        executor: Callable[[Request, Key], LearningExecutor | None],
        frozen: Callable[[], str | None],
        warn: Callable[[str], None],
    ) -> None:
        self._executor, self._frozen, self._warn = executor, frozen, warn
        self.queue = ShadowQueue()
        self.spent = 0.0
        """Seconds that idle time was used for."""
        self._began = time.monotonic()
        self._thread: threading.Thread | None = None
        self._filled, self._stop, self._hurried = threading.Event(), threading.Event(), threading.Event()
        self._starting, self._sitting = threading.Lock(), threading.Lock()

    def meet(self, key: Key, calls: int = 1) -> None:
        """Count calls of a class that used what is known."""
        if self.queue.meet(key, calls) and not self._filled.is_set() and not self._stop.is_set():
            self._filled.set()
            self._start()

    def end(self) -> None:
        """End the thread after the product that it computes."""
        self._stop.set()
        self._filled.set()
        if self._thread is not None:
            self._thread.join(LAST_SECONDS)

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._work, name="lcma-shadow", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # no thread is to be had: `learn` still decides
                self._stop.set()
                self._warn(f"deciding products of graphs and gradients in idle time failed: {error}")
            else:
                self._thread = thread

    def _work(self) -> None:
        """Wait for idle time, and use it while classes wait."""
        while not self._stop.is_set():
            self._filled.wait()
            quiet = _Quiet()
            if self._stop.wait(IDLE_SECONDS):
                return
            try:
                if quiet.held():
                    self._use_idle_time(quiet)
            except Exception as error:  # products go on by what is known
                self._stop.set()
                self._warn(f"deciding products of graphs and gradients failed: {type(error).__name__}: {error}")

    def _use_idle_time(self, quiet: _Quiet) -> None:
        self._filled.clear()  # first: a class that is met now sets it again
        if not (waiting := self.queue.waiting()):
            return
        self._filled.set()
        if self._frozen() or not may_start(self.spent, time.monotonic() - self._began):
            return

        def go_on() -> bool:
            within = may_go_on(self.spent + time.monotonic() - began, time.monotonic() - self._began)
            others = quiet.disturbed() or self._hurried.is_set() or self._stop.is_set()
            return within and not others and not self._frozen()

        for key in waiting:
            began = time.monotonic()
            if not _has_setting(key):
                continue
            try:
                self._sit(key, go_on)
            finally:
                self.spent += time.monotonic() - began
            if not go_on():
                return

    def decide(self, lessons: list[Key], seconds: float, on_event: Callable[[str], None]) -> list[Learned]:
        """Decide the classes that wait and the given ones now, by shadow calls of the calling thread.

        Raises:
            PlanError: nothing may be tried now.
        """
        if reason := self._frozen():
            raise PlanError(f"nothing can be learned: {reason}")
        self._hurried.set()  # idle time's calls make room
        try:
            return self._decide(lessons, time.monotonic() + seconds, on_event)
        finally:
            self._hurried.clear()

    def _decide(self, lessons: list[Key], deadline: float, on_event: Callable[[str], None]) -> list[Learned]:
        found = []
        left = list(dict.fromkeys([*self.queue.waiting(), *lessons]))
        while left and time.monotonic() < deadline:
            for key in list(left):
                lesson = self._sit(key, lambda: time.monotonic() < deadline, precise=True)
                if isinstance(lesson, str):
                    on_event(f"{key[0]}: left to what is known: {lesson}")
                elif lesson.is_settled:
                    found.append(_learned(lesson))
                    on_event(str(found[-1]))
                else:
                    continue
                left.remove(key)
            time.sleep(PAUSE if left else 0)
        for key in left:
            on_event(f"{key[0]}: not decided in the time; call again with more seconds")
        return found

    def _sit(self, key: Key, go_on: Callable[[], bool], precise: bool = False) -> Lesson | str:
        """Run shadow calls of a class until it is decided, waits for its candidates, or `go_on()` is false.

        With `precise` torch's setting of tf32 is changed meanwhile where the class needs it. Returns the lesson, or
        the reason why shadow calls cannot decide the class.
        """
        with self._sitting:
            try:
                executor = self._executor(key[0], key)
                assert executor is not None
                lesson = executor.lesson
                if not lesson.rests:
                    with _scratch(key, lesson, after=precise) as run, _setting(key[0], precise):
                        while not lesson.rests and go_on():
                            lesson.hasten()
                            run(executor)
            except (LcmaError, MemoryError, RuntimeError) as error:  # torch's lack of memory is a RuntimeError
                self.queue.forget(key)
                return str(error).partition("\n")[0]
            if lesson.is_settled:
                self.queue.settle(key)
            return lesson


class _Quiet:
    """Whether the process has been idle since."""

    def __init__(self) -> None:
        self._used = plan_cache.used
        self._began, self._processor = time.monotonic(), time.process_time()

    def disturbed(self) -> bool:
        """Return whether a product was looked up since."""
        return plan_cache.used != self._used

    def held(self) -> bool:
        """Return whether the process, and the GPU as far as it can be asked, has been idle until now."""
        elapsed, processor = time.monotonic() - self._began, time.process_time() - self._processor
        return is_idle(self.disturbed(), processor, elapsed)


@contextlib.contextmanager
def _scratch(key: Key, lesson: Lesson, after: bool) -> Iterator[Callable[[Executor], object]]:
    """Yield a function that runs an executor on scratch operands; with `after` a GPU first does what was launched.

    Raises:
        MemoryError: they take more than their part of the free memory.
    """
    request, index = key
    elements = request.items_a * request.m * request.k + request.items_b * request.k * request.n
    size = (elements + request.items * request.m * request.n) * request.itemsize
    needed = DRAWN * size + max(plan.workspace for plan in lesson.plans)
    if request.device == "cpu":
        from .cpu.bench import CpuBench
        from .cpu.machine import free_bytes

        free = free_bytes()
    else:
        from .cuda import scratch

        free = scratch.free_bytes(index)
    if needed > SCRATCH_PART * free:
        raise MemoryError(f"it needs {needed / 1e9:.3g} GB for a trial, and {free / 1e9:.3g} GB are free")
    if request.device == "cpu":
        a, b = CpuBench().operands(request, 0)[:2]
        yield lambda executor: executor.run(a, b)
    else:
        with scratch.scratch_calls(request, index, after) as run:
            yield run


def _has_setting(key: Key) -> bool:
    """Return whether the threads, or the GPU and torch's setting of tf32, are what a class needs, and free now."""
    request, index = key
    if request.device == "cpu":
        return thread_count() == index
    from .cuda.dtypes import allows_tf32
    from .cuda.scratch import is_idle as gpu_is_idle

    return (request.dtype != "float32" or allows_tf32() == (request.precision == TF32)) and gpu_is_idle(index)


def _setting(request: Request, precise: bool) -> Any:
    """Return a context in which torch multiplies a GPU's float32 as the request needs."""
    if not precise or request.device == "cpu":
        return contextlib.nullcontext()
    from .cuda.dtypes import vendor_precision

    return vendor_precision(request.arithmetic)


def _learned(lesson: Lesson) -> Learned:
    seconds = lesson.trial.seconds()
    vendor = min(seconds[one] for one in range(lesson.trial.vendors) if one in seconds)
    return Learned(lesson.request, str(lesson.plan.candidate), vendor / seconds[lesson.trial.leader])
