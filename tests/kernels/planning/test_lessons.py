"""Lessons without a machine: clocks and contenders that fail, and calls that are interrupted."""

from __future__ import annotations

import time
from functools import partial
from types import SimpleNamespace

import pytest

from lcma.errors import PlanError
from lcma.kernels.factored import factored_request
from lcma.kernels.planning.trials import clock
from lcma.kernels.planning.trials.lesson import SHORT_WATCHED, WATCHED, LearningExecutor, Lesson
from lcma.kernels.planning.trials.trial import BLOCK, SHORT, begun, decided_by
from lcma.kernels.request import Request
from lcma.kernels.structured.chain import KroneckerSparse
from lcma.kernels.structured.pattern import Pattern

SIZES = 656, 648, 664


class Product:
    def run(self, a, b, out=None):
        return "product"


@pytest.mark.parametrize("fails", ["begin", "end", "seconds"])
def test_a_clock_that_fails_costs_no_product(fails):
    def broken(*_):
        raise OSError("no clock")

    failing = clock.HostClock()
    setattr(failing, fails, broken)

    plan = SimpleNamespace(for_request=lambda request: SimpleNamespace(build=Product), candidate="vendor")
    lesson = Lesson(Request(4, 4, 4), [plan], begun(1), failing, lambda _: None, lambda _: None)
    executor = LearningExecutor(Request(4, 4, 4), lesson)
    assert [executor.run(1, 2) for _ in range(8)] == ["product"] * 8


def test_interrupted_calls_do_not_starve_a_challenger():
    class Works:
        workspace = 0

        def run(self, a, b, out=None):
            time.sleep(1e-4)

    class Interrupted(Works):
        calls = 0

        def run(self, a, b, out=None):
            self.calls += 1
            raise KeyboardInterrupt

    lesson = Lesson(Request(*SIZES), [None, None], begun(1, 2, open=False), clock.HostClock(), print, print)
    executor = LearningExecutor(lesson.request, lesson)
    executor._executors = {0: Works(), 1: Interrupted()}
    for _ in range(60):
        try:
            executor.run(None, None)
        except KeyboardInterrupt:
            assert lesson.trial.outstanding == 0
    assert executor._executors[1].calls > 3 * BLOCK


def test_operands_at_fault_do_not_cost_a_contender_its_place():
    """What the leader cannot run either says nothing of the challenger."""

    class Picky:
        workspace = 0

        def run(self, a, b, out=None):
            raise PlanError("these operands do not fit")

    lesson = Lesson(Request(*SIZES), [None, None], begun(1, 2, open=False), clock.HostClock(), print, print)
    executor = LearningExecutor(lesson.request, lesson)
    executor._executors = {0: Picky(), 1: Picky()}
    for _ in range(12):
        with pytest.raises(PlanError, match="do not fit"):
            executor.run(None, None)
    assert not lesson.trial.failed


def test_an_interrupted_clock_leaves_later_calls_timed():
    def interrupted():
        raise KeyboardInterrupt

    timer = clock.HostClock()
    lesson = Lesson(Request(*SIZES), [None], begun(1), timer, lambda _: None, lambda _: None)
    executor = LearningExecutor(lesson.request, lesson)
    executor._executors = {0: Product()}
    timer.begin = interrupted
    with pytest.raises(KeyboardInterrupt):
        executor.run(1, 2)
    del timer.begin
    for _ in range(4):
        executor.run(1, 2)
    assert lesson.trial.led


def call(lesson, seconds, count):
    """Make calls of a lesson whose contenders take the given seconds."""
    for _ in range(count):
        contender, counts = lesson.begin()
        if counts is not None:
            lesson.end(contender, seconds[contender], counts)


@pytest.mark.parametrize(
    ("device", "schemes", "leader"),
    [
        ("cpu", [5e-3], 0),  # far behind: nothing else is compiled
        ("cpu", [4.2e-3, 4.1e-3], 0),  # near, but no scheme leads after the second round
        ("cpu", [4.2e-3, 3e-3, 2e-3], 3),
        ("cpu", [3e-3, 3.5e-3, 2e-3], 3),
        ("cpu", [3.0], 1),  # calls of seconds: more contenders would take minutes
        ("cuda", [4.2e-3], 0),
        ("cuda", [3e-3, 2e-3], 2),
    ],
)
def test_contenders_are_asked_for_again_where_they_may_gain(device, schemes, leader):
    seconds = [4.0 if schemes == [3.0] else 4e-3, *schemes]
    ticks = clock.HostClock()
    ticks.seconds = lambda reading: reading
    asked = []
    vendor, *others = (SimpleNamespace(candidate=number) for number in range(len(seconds)))
    lesson = Lesson(Request(*SIZES, device=device), [vendor], begun(1), ticks, lambda _: None, asked.append)

    calls = partial(call, lesson, seconds)
    calls(10)
    for number, other in enumerate(others, 1):
        assert len(asked) == lesson.rounds == number
        lesson.add([other], complete=True)
        calls(400)
    assert lesson.trial.decided
    assert lesson.plan is [vendor, *others][leader]
    assert len(asked) == len(schemes)  # and not once more


def asking_lesson(scheme_seconds, compiled):
    """Return a lesson whose first contender took `compiled` processor seconds, its requests, and its next calls."""
    seconds, asked = (4e-3, scheme_seconds), []
    ticks = clock.HostClock()
    ticks.seconds = lambda reading: reading
    vendor, scheme = (SimpleNamespace(candidate=number) for number in range(2))
    lesson = Lesson(Request(*SIZES), [vendor], begun(1), ticks, lambda _: None, asked.append)

    calls = partial(call, lesson, seconds)
    calls(10)
    lesson.charge(compiled)
    lesson.add([scheme], complete=True)
    calls(200)
    return lesson, asked, calls


def test_the_vendors_calls_pay_for_compilation_before_more_is_compiled():
    lesson, asked, calls = asking_lesson(4.2e-3, compiled=0.3)
    calls(4000)
    assert len(asked) == 1
    assert not lesson.is_settled
    assert not lesson.rests  # calls bring the next request nearer
    calls(4000)  # 2.5% of 4 ms each are twice 0.3 s
    assert len(asked) == 2
    assert lesson.rests


def test_where_a_scheme_leads_or_nobody_waits_compilation_goes_on():
    assert len(asking_lesson(3.5e-3, compiled=0.3)[1]) == 2
    lesson, asked, _ = asking_lesson(4.2e-3, compiled=0.3)
    lesson.hasten()
    lesson.hasten()
    assert len(asked) == 2


class Repeats(Product):
    """A product of no time that repeats runs."""

    workspace = 0

    def again(self, a, b):
        return "product"


@pytest.mark.parametrize("seconds", [5e-4, 5e-3])
@pytest.mark.parametrize("watched", [1, 8])
@pytest.mark.parametrize("before", range(8))
def test_a_decided_class_is_watched_whatever_number_of_calls_came_before(seconds, watched, before):
    ticks, read = clock.HostClock(), []
    ticks.watched, ticks.seconds = watched, lambda reading: read.append(reading) or seconds
    lesson = Lesson(Request(*SIZES), [None], decided_by(1, (seconds,)), ticks, print, print)
    executor = LearningExecutor(lesson.request, lesson)
    executor._executors = {0: Repeats()}
    lesson.calls = before
    for _ in range(2000):
        executor.again(1, 2)
    rate = 1 + len(read) // 2
    assert 2000 / rate <= 2.1 * (SHORT_WATCHED if seconds < SHORT else WATCHED)


@pytest.mark.parametrize("seconds", [5e-4, 5e-3])
def test_calls_that_are_lent_on_a_gpu_are_counted_and_still_watched(seconds):
    ticks, read = clock.HostClock(), []
    ticks.seconds = lambda reading: read.append(reading) or seconds
    lesson = Lesson(Request(*SIZES, device="cuda"), [None], decided_by(1, (seconds,)), ticks, print, print)
    executor = LearningExecutor(lesson.request, lesson)
    executor._executors = {0: Repeats()}
    lent = 0
    for _ in range(2000):
        if executor.lent > 0:
            executor.lent -= 1
            lent += 1
            assert executor.loan(1, 2) == "product"
        elif (leader := executor.repeats()) is not None:
            executor.lend()
            leader.again(1, 2)
        else:
            executor.again(1, 2)
    often = SHORT_WATCHED if seconds < SHORT else WATCHED
    assert lent > 0.9 * 2000 * min(often - 3, 0.05 / seconds) / often
    assert lesson.calls > 2000 - often
    assert 2000 / len(read) <= 2.1 * often


@pytest.mark.parametrize(("seconds", "structured", "asks"), [(5e-4, False, 0), (5e-4, True, 1), (5e-3, False, 1)])
def test_nothing_is_compiled_for_short_dense_products_of_a_processor(seconds, structured, asks):
    ticks, asked = clock.HostClock(), []
    ticks.seconds = lambda reading: seconds
    sizes = factored_request(KroneckerSparse.of(Pattern(1, 96, 48, 5)), 64) if structured else Request(*SIZES)
    lesson = Lesson(sizes, [None], begun(1), ticks, lambda _: None, asked.append)
    executor = LearningExecutor(lesson.request, lesson)
    executor._executors = {0: Repeats()}
    for _ in range(200):
        executor.run(1, 2)
    assert len(asked) == asks
    assert lesson.is_settled is not bool(asks)
