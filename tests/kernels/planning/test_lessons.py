"""Lessons: what is timed, asked for and compiled while products are run, with executors of no time."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from lcma.errors import PlanError
from lcma.kernels.factored import factored_request
from lcma.kernels.planning.trials.lesson import SHORT_WATCHED, WATCHED, HostClock, LearningExecutor, Lesson
from lcma.kernels.planning.trials.trial import BLOCK, SHORT, admit, begun, choose, decided_by, issue, observe
from lcma.kernels.request import Request
from lcma.kernels.structured.chain import KroneckerSparse
from lcma.kernels.structured.pattern import Pattern

from ...refusal import refuses
from ..cases import each, fails

SIZES = 656, 648, 664


class Product:
    """A product of no time that repeats runs."""

    workspace = 0

    def run(self, a, b, out=None):
        return "product"

    def again(self, a, b):
        return "product"


class Ticks(HostClock):
    """A clock by which every call takes the same time; it keeps what was read."""

    def __init__(self, each):
        self.each, self.read = each, []

    def seconds(self, reading):
        self.read.append(reading)
        return self.each


def executor_of(products, trial, ticks, request=None, ask=print):
    """The executor of a lesson whose contenders' executors are these."""
    request = request or Request(*SIZES)
    executor = LearningExecutor(request, Lesson(request, [None] * len(products), trial, ticks, print, ask))
    executor._executors = dict(enumerate(products))
    return executor


def test_few_calls_run_or_time_a_challenger_that_has_to_wait():
    """On a GPU the times of calls become known later: until then few calls run the challenger."""
    trial = admit(begun(1), 2, complete=True)
    ran = []
    for _ in range(40):
        contender = choose(trial)
        trial, _ = issue(trial, contender)
        ran.append(contender)
    assert ran.count(1) <= 3
    # A kernel whose first call took 0.4 s waits for hundreds of thousands of calls of 40 us: each was timed.
    trial = begun(1, 2, open=False)
    for seconds in (*[4e-5] * 8, 0.4, *[4e-5] * 4):
        contender = int(seconds == 0.4)
        trial, counts = issue(trial, contender)
        trial = observe(trial, contender, seconds, counts)
    assert trial.challenger == 1
    ticks = Ticks(4e-5)
    executor = executor_of([Product(), Product()], trial, ticks)
    for _ in range(4000):
        executor.again(1, 2)
    assert len(ticks.read) <= 1.1 * 4000 / WATCHED
    assert executor.lesson.trial.spent == pytest.approx(4012 * 4e-5 + 0.4, rel=0.01)


@pytest.mark.parametrize("part", ["begin", "end", "seconds"])
def test_a_clock_that_fails_costs_no_product(part):
    failing = HostClock()
    setattr(failing, part, fails(OSError("no clock")))
    plan = SimpleNamespace(for_request=lambda request: SimpleNamespace(build=Product), candidate="vendor")
    lesson = Lesson(Request(4, 4, 4), [plan], begun(1), failing, lambda _: None, lambda _: None)
    executor = LearningExecutor(Request(4, 4, 4), lesson)
    assert [executor.run(1, 2) for _ in range(8)] == ["product"] * 8


def test_interrupted_calls_do_not_starve_a_challenger_nor_leave_later_ones_untimed():
    class Works(Product):
        def run(self, a, b, out=None):
            time.sleep(1e-4)

    class Interrupted(Works):
        calls = 0

        def run(self, a, b, out=None):
            self.calls += 1
            raise KeyboardInterrupt

    executor = executor_of([Works(), Interrupted()], begun(1, 2, open=False), HostClock())
    for _ in range(60):
        try:
            executor.run(None, None)
        except KeyboardInterrupt:
            assert executor.lesson.trial.outstanding == 0
    assert executor._executors[1].calls > 3 * BLOCK

    timer = HostClock()
    executor = executor_of([Product()], begun(1), timer)
    timer.begin = fails(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        executor.run(1, 2)
    del timer.begin
    for _ in range(4):
        executor.run(1, 2)
    assert executor.lesson.trial.led


def test_operands_at_fault_do_not_cost_a_contender_its_place():
    """What the leader cannot run either says nothing of the challenger."""

    picky = SimpleNamespace(run=fails(PlanError("these operands do not fit")))
    executor = executor_of([picky, picky], begun(1, 2, open=False), HostClock())
    for _ in range(12):
        refuses("do not fit", executor.run, None, None)
    assert not executor.lesson.trial.failed


def asking_lesson(seconds, device="cpu"):
    """Return a lesson after ten calls of the vendor, its requests, all contenders, and its next calls.

    The contenders take these seconds.
    """

    def call(count):
        for _ in range(count):
            contender, counts = lesson.begin()
            if counts is not None:
                lesson.end(contender, seconds[contender], counts)

    asked, plans = [], [SimpleNamespace(candidate=number) for number in range(len(seconds))]
    lesson = Lesson(Request(*SIZES, device=device), plans[:1], begun(1), HostClock(), print, asked.append)
    call(10)
    return lesson, asked, plans, call


@each("device, schemes, leader", __file__, "rounds")
def test_contenders_are_asked_for_again_where_they_may_gain(device, schemes, leader):
    lesson, asked, plans, calls = asking_lesson([4.0 if schemes == [3.0] else 4e-3, *schemes], device)
    for number, other in enumerate(plans[1:], 1):
        assert len(asked) == lesson.rounds == number
        lesson.add([other], complete=True)
        calls(400)
    assert lesson.trial.decided
    assert lesson.plan is plans[leader]
    assert len(asked) == len(schemes)  # and not once more


def compiled_lesson(scheme_seconds):
    """Return a lesson whose first contender took 0.3 processor seconds to compile, its requests and its next calls."""
    lesson, asked, plans, calls = asking_lesson([4e-3, scheme_seconds])
    lesson.charge(0.3)
    lesson.add(plans[1:], complete=True)
    calls(200)
    return lesson, asked, calls


def test_the_vendors_calls_pay_for_compilation_unless_a_scheme_leads_or_nobody_waits():
    lesson, asked, calls = compiled_lesson(4.2e-3)
    calls(4000)
    assert len(asked) == 1
    assert not lesson.is_settled
    assert not lesson.rests  # calls bring the next request nearer
    calls(4000)  # 2.5% of 4 ms each are twice 0.3 s
    assert len(asked) == 2
    assert lesson.rests
    assert len(compiled_lesson(3.5e-3)[1]) == 2
    lesson, asked, _ = compiled_lesson(4.2e-3)
    lesson.hasten()
    lesson.hasten()
    assert len(asked) == 2


@pytest.mark.parametrize("seconds", [5e-4, 5e-3])
@pytest.mark.parametrize("watched", [1, 8])
@pytest.mark.parametrize("before", range(8))
def test_a_decided_class_is_watched_whatever_number_of_calls_came_before(seconds, watched, before):
    ticks = Ticks(seconds)
    ticks.watched = watched
    executor = executor_of([Product()], decided_by(1, (seconds,)), ticks)
    executor.lesson.calls = before
    for _ in range(2000):
        executor.again(1, 2)
    rate = 1 + len(ticks.read) // 2
    assert 2000 / rate <= 2.1 * (SHORT_WATCHED if seconds < SHORT else WATCHED)


@pytest.mark.parametrize("seconds", [5e-4, 5e-3])
def test_calls_that_are_lent_on_a_gpu_are_counted_and_still_watched(seconds):
    ticks = Ticks(seconds)
    executor, lent = executor_of([Product()], decided_by(1, (seconds,)), ticks, Request(*SIZES, device="cuda")), 0
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
    assert executor.lesson.calls > 2000 - often
    assert 2000 / len(ticks.read) <= 2.1 * often


@pytest.mark.parametrize(("seconds", "structured", "asks"), [(5e-4, False, 0), (5e-4, True, 1), (5e-3, False, 1)])
def test_nothing_is_compiled_for_short_dense_products_of_a_processor(seconds, structured, asks):
    asked = []
    sizes = factored_request(KroneckerSparse.of(Pattern(1, 96, 48, 5)), 64) if structured else Request(*SIZES)
    executor = executor_of([Product()], begun(1), Ticks(seconds), sizes, asked.append)
    for _ in range(200):
        executor.run(1, 2)
    assert len(asked) == asks
    assert executor.lesson.is_settled is not bool(asks)
