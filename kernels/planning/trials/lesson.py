"""The lesson of one request class: its trial, the plans of its contenders, and the executor that runs its calls.

The learner supplies contenders from the background; calls choose among those that are there. No lock is held while a
product is computed. One call at a time is timed: calls that overlap with it run the leader untimed.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ....errors import PlanError
from ...request import Request
from .trial import MOST_COUNTED, SHORT, Trial, admit, affords_more, changed, choose, fail, issue, observe, widen

if TYPE_CHECKING:
    from ..strategy import Executor, Operand, Plan


Reading = Any
"""What a clock returned for one call; its seconds may become known later."""


class Clock(Protocol):
    """Times calls of one device without waiting for them."""

    def begin(self) -> Any:
        """Return the start of a call."""

    def end(self, began: Any) -> Reading:
        """Return the reading of a call that began there and whose host part has returned."""

    def seconds(self, reading: Reading) -> float | None:
        """Return the seconds of a call, or None while it is not known."""


class HostClock:
    """The processor's own clock: calls have finished when they return."""

    def begin(self) -> float:
        return time.perf_counter()

    def end(self, began: float) -> float:
        return time.perf_counter() - began

    def seconds(self, reading: float) -> float:
        return reading


Event = Callable[["Lesson"], None]

MOST_UNREAD = 64
"""Calls whose times are not known yet; further calls are not timed."""

WATCHED, SHORT_WATCHED = 20, 100
"""Of the calls of a class in which nothing is compared one in so many is timed, and stands for them.

Of a decided class of short calls one in SHORT_WATCHED: timing one costs as much as several of them.
"""

LENT_SECONDS = 0.5
"""Seconds of calls that a caller may leave to the library without a look at their class."""

ASKED = 4
"""The call of a class at which its contenders are asked for: what is multiplied a few times has nothing to learn, and
predictions are scaled to the calls before."""

CONTENDERS = {"cpu": (1, 3, 8), "cuda": (3, 8)}
"""Total number of contenders after the first, second and third request for them.

The last request is made only if a scheme leads. On a processor the second one is made only if the first scheme's time
was within NEAR of the vendor's, and not before the calls have taken so long that its compilation costs a small part of
them (`affords_more`): on two cores three contenders, none of which won, cost a loop of 30 s about 1.5 s.
"""

AGAIN_WITHIN = 40.0
"""Seconds of calls of a class after which no more contenders are requested, so that it is decided within two minutes:
five contenders that are close to the leader take 250 calls."""

NEAR = 1.1
"""Ratio of a scheme's time to the vendor's up to which others, by prediction as good, may be faster than the vendor."""


class Lesson:
    """What one class has shown, shared by all threads.

    `on_decided` is called with the lesson at every decision, `on_wanted` when it needs contenders.
    """

    def __init__(
        self, request: Request, plans: Sequence[Plan], trial: Trial, clock: Clock, on_decided: Event, on_wanted: Event
    ) -> None:
        self.request, self.clock, self.trial = request, clock, trial
        self.plans: list[Plan] = list(plans)
        self.calls = 0
        self._on_decided, self._on_wanted = on_decided, on_wanted
        self.rounds = 0
        """Times that contenders were asked for."""
        self._wants = True
        """Whether contenders are to be asked for, once that is affordable."""
        self._unread: deque[tuple[int, Reading, bool, int]] = deque()
        self._untimed = 0
        self._lock = threading.Lock()
        self._timing = False
        self.watched = WATCHED
        """Calls of which one is timed while nothing is compared."""

    @property
    def plan(self) -> Plan:
        """The plan of the leader."""
        return self.plans[self.trial.leader]

    @property
    def is_settled(self) -> bool:
        """Whether the class is decided, with times."""
        return self.trial.decided and self.trial.median is not None

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is compared: the class is decided, waits for contenders and its leader has its times, or its
        challenger has to wait.
        """
        trial = self.trial
        if trial.challenger is not None:
            return trial.waits
        return len(trial.led) >= MOST_COUNTED if trial.open else trial.median is not None

    @property
    def rests(self) -> bool:
        """Whether a call now would show nothing: the class is decided, or waits for the contenders it asked for."""
        waits = self.rounds > 0 and not self._wants
        return self.is_settled or (waits and self.trial.open and self.trial.challenger is None)

    def add(self, plans: Sequence[Plan], complete: bool) -> None:
        """Add contenders whose code is compiled; `complete`: no others will come."""
        with self._lock:
            self.plans += [plan for plan in plans if all(plan.candidate != one.candidate for one in self.plans)]
            self._become(admit(self.trial, len(self.plans), complete))

    def charge(self, seconds: float) -> None:
        """Count processor seconds that compiled contenders beside the calls."""
        with self._lock:
            self.trial = changed(self.trial, compiled=self.trial.compiled + seconds)

    def hasten(self) -> None:
        """Ask for the next contenders now: no call of the user's pays for their compilation."""
        with self._lock:
            if self.rounds and self._wants:
                self._ask()

    def begin(self) -> tuple[int, bool | None]:
        """Return the contender of a call that begins, and whether its time counts; None: the call is not timed."""
        with self._lock:
            self.calls += 1
            if self._wants and self.calls >= ASKED and self.trial.open and affords_more(self.trial):
                if self.rounds or self._may_gain():
                    self._ask()
                else:
                    self._become(admit(self.trial, self.trial.contenders, complete=True))
            self._read()
            # Timing costs a short call a tenth of itself, and a GPU's events more than itself.
            if self._timing or (self.is_quiet and self._untimed + 1 < self.watched) or len(self._unread) >= MOST_UNREAD:
                self._untimed += 1
                return self.trial.leader, None
            contender = choose(self.trial)
            self.trial, counts = issue(self.trial, contender)
            self._timing = True
        return contender, counts

    def end(self, contender: int, reading: Reading, counts: bool) -> None:
        """Record the reading of a timed call."""
        with self._lock:
            self._timing = False
            # The call stands for those before it that were not timed.
            self._unread.append((contender, reading, counts, 1 + self._untimed))
            self._untimed = 0
            self._read()

    def abandon(self, contender: int) -> None:
        """Record that a timed call was interrupted: its contender waits for no time of it."""
        with self._lock:
            self._timing = False
            self._become(observe(self.trial, contender, math.nan, False))

    def refuse(self, contender: int) -> None:
        """Record that a contender cannot run."""
        with self._lock:
            self._become(fail(self.trial, contender))

    def skip(self, calls: int) -> None:
        """Count calls of the decided leader that did not pass through this lesson."""
        with self._lock:
            self.calls += calls
            self._untimed += calls

    def _read(self) -> None:
        while self._unread:
            contender, reading, counts, calls = self._unread[0]
            try:
                seconds = self.clock.seconds(reading)
            except Exception:  # a clock that fails has measured nothing
                seconds = math.nan
            if seconds is None:
                return
            self._unread.popleft()
            self._become(observe(self.trial, contender, seconds, counts, calls))

    def _may_gain(self) -> bool:
        """Return whether any contender may be faster than a dense product of the library that is this short.

        On a processor a scheme's threads wait for each other between its steps, 20 to 100 us each. Nothing is known of
        the strategies that the user has registered.
        """
        from ..strategy import registered  # imported with the lesson's plans

        short = min(self.trial.led, default=SHORT) < SHORT  # the first calls of a process are slow
        cannot = short and self.request.device == "cpu" and self.request.is_dense
        return not cannot or bool(registered(self.request.device))

    def _is_promising(self) -> bool:
        """Return whether more contenders are worth their compilation: a scheme leads, or nearly does at first."""
        trial, last = self.trial, self.rounds + 1 == len(CONTENDERS[self.request.device])
        if trial.spent > AGAIN_WITHIN:
            return False
        near = not last and any(one.loser >= trial.vendors and one.ratio < NEAR for one in trial.losses)
        return near or trial.leader >= trial.vendors

    def _ask(self) -> None:
        self.rounds, self._wants = self.rounds + 1, False
        self._on_wanted(self)

    def _become(self, trial: Trial) -> None:
        before, self.trial = self.trial, trial
        self.watched = WATCHED if trial.median is None or trial.median >= SHORT else SHORT_WATCHED
        if self.is_settled and (before.median is None or not before.decided):
            self._on_decided(self)
            if 0 < self.rounds < len(CONTENDERS[self.request.device]) and self._is_promising():
                self.trial, self._wants = widen(self.trial), True
        if before.decided and before.median is not None and trial.median is None and not self.rounds:
            # Compared again: of the contenders only those that wisdom names are known here.
            self.trial = changed(trial, open=True)


class LearningExecutor:
    """Runs the calls of one request by its lesson's contenders. See `Executor`; one executor a contender."""

    def __init__(self, request: Request, lesson: Lesson) -> None:
        self.request, self.lesson = request, lesson
        self._executors: dict[int, Executor] = {}
        self._left = 0
        self.lent = 0
        """Calls that the caller may run without asking: by numpy's product, on a GPU by `loan`."""
        self.loan: Callable[[Any, Any], Any] | None = None
        """What runs calls that are lent on a GPU: of operands as in a run."""
        self.place: int | None = None
        """The number of threads, or the index of the GPU, that the class is for."""

    @property
    def workspace(self) -> int:
        """Bytes that the leader allocates during one run."""
        return self._executor(self.lesson.trial.leader).workspace

    def left_to(self, library: str) -> bool:
        """Return whether the caller may call a vendor's library itself: its product leads, and nothing is compared.

        One call in `watched` is to be run here, so that a change is noticed.
        """
        lesson = self.lesson
        if not lesson.is_quiet or lesson.plan.library != library or self._left + 1 >= lesson.watched:
            if self._left:
                lesson.skip(self._left)
                self._left = 0
            return False
        self._left += 1
        return True

    def repeats(self) -> Any:
        """Return the leader's executor if a call of the operands of a run needs no lesson, else None.

        Nothing is compared, the call is not the one in `watched` that is timed, and the executor repeats runs.
        """
        lesson = self.lesson
        leader: Any = self._executors.get(lesson.trial.leader)
        if lesson.is_quiet and self._left + 1 < lesson.watched and hasattr(leader, "again"):
            self._left += 1
            return leader
        return None

    def lend(self) -> None:
        """Lend the caller calls of the leader, up to the one that is to be timed: on a processor those of numpy's."""
        lesson = self.lesson
        leader: Any = self._executors.get(lesson.trial.leader)
        on_gpu = self.request.device == "cuda" and hasattr(leader, "again")
        if lesson.is_quiet and (on_gpu or lesson.plan.library == "numpy"):
            seconds = lesson.trial.median or lesson.trial.led[-1]
            self.loan = leader.again if on_gpu else None
            self.lent = max(0, min(lesson.watched - self._left - 2, int(LENT_SECONDS / seconds)))
            self._left += self.lent

    def again(self, a: Operand, b: Operand) -> Operand:
        """Compute C = A B as `run` does, without checks where the contender has a way: the operands are as in a run."""
        if (leader := self.repeats()) is not None:
            return leader.again(a, b)
        return self._chosen(a, b, None, checked=False)

    def run(self, a: Operand, b: Operand, out: Operand | None = None) -> Operand:
        """Compute C = A B in `out`, or in a new array, by the contender that the trial chooses."""
        return self._chosen(a, b, out, checked=True)

    def _chosen(self, a: Operand, b: Operand, out: Operand | None, checked: bool) -> Operand:
        """Run the contender that the trial chooses; without its checks if it can repeat a checked call."""
        lesson = self.lesson
        if self._left:
            lesson.skip(self._left)
            self._left = 0
        contender, counts = lesson.begin()
        try:
            began = None if counts is None else _reading(lesson.clock.begin)
            executor = self._executor(contender)
            again = None if checked else getattr(executor, "again", None)
            result = executor.run(a, b, out) if again is None else again(a, b)
        except BaseException as error:
            if counts is not None:
                lesson.abandon(contender)
            if contender == 0 or not isinstance(error, PlanError | MemoryError | RuntimeError):
                raise
            result = self._executor(0).run(a, b, out)  # raises where the operands are at fault, not the contender
            lesson.refuse(contender)
            return result
        if counts is None:
            return result
        reading = None if began is None else _reading(lambda: lesson.clock.end(began))
        if reading is None:
            lesson.abandon(contender)
        else:
            lesson.end(contender, reading, counts)
        return result

    def _executor(self, contender: int) -> Executor:
        """Return a contender's executor, built with its first use."""
        found = self._executors.get(contender)
        if found is None:
            built = self.lesson.plans[contender].for_request(self.request).build()
            found = self._executors.setdefault(contender, built)
        return found


def _reading(read: Callable[[], Reading]) -> Reading | None:
    """Return what a clock reads; None if it fails: the product is right without."""
    try:
        return read()
    except Exception:  # whatever a clock raises, the caller's product does not depend on it
        return None
