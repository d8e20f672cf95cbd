"""The queue of classes for shadow calls, and the share of a simulated process's time that these take."""

from __future__ import annotations

import pytest

from lcma.kernels.planning.trials.shadow_queue import (
    IDLE_PART,
    IDLE_SECONDS,
    LEAST_MET,
    MOST_MET,
    SHADOW_PART,
    SHADOW_SECONDS,
    SITTING,
    ShadowQueue,
    is_idle,
    may_go_on,
    may_start,
)


def test_a_class_waits_from_its_second_call_on_and_the_latest_is_first():
    queue = ShadowQueue()
    assert [queue.meet(one) for one in "abab"] == [False, False, True, True]
    assert queue.meet("c", LEAST_MET)
    assert queue.waiting() == ["c", "b", "a"]
    queue.meet("a")
    assert queue.waiting() == ["a", "c", "b"]


def test_a_settled_class_does_not_wait_again():
    queue = ShadowQueue()
    queue.meet("a", 5)
    queue.settle("a")
    queue.settle("never met")
    assert not queue.meet("a", 5)
    assert queue.waiting() == []
    assert queue.known() == ["a"]


def test_a_class_that_could_not_be_decided_waits_again_after_more_calls():
    queue = ShadowQueue()
    queue.meet("a", LEAST_MET)
    queue.forget("a")
    assert queue.known() == []
    assert not queue.meet("a")
    assert queue.meet("a", LEAST_MET)


def test_the_classes_are_bounded_and_the_latest_stay():
    queue = ShadowQueue()
    for number in range(3 * MOST_MET):
        queue.meet(number, LEAST_MET)
    assert queue.waiting() == list(range(3 * MOST_MET - 1, 2 * MOST_MET - 1, -1))


@pytest.mark.parametrize("each", [0.001, 0.1, 1.9])
def test_shadow_calls_of_a_simulated_process_take_their_part_and_no_more(each):
    """Work without end: calls run whenever they may, all the time that the process is idle."""
    now = spent = 0.0
    while now < 4000.0:
        now += IDLE_SECONDS
        if not may_start(spent, now):
            continue
        while may_go_on(spent, now):
            spent, now = spent + each, now + each
    assert spent <= SHADOW_PART * now + SHADOW_SECONDS + each
    assert spent >= SHADOW_PART * now + SHADOW_SECONDS - SITTING - 1.0


@pytest.mark.parametrize(("called", "processor", "elapsed", "idle"), [
    (False, 0.0, IDLE_SECONDS, True), (True, 0.0, 10.0, False), (False, 0.0, IDLE_SECONDS / 2, False),
    (False, 10.0 * IDLE_PART, 10.0, True), (False, 11.0 * IDLE_PART, 10.0, False),
])  # fmt: skip
def test_a_process_is_idle_without_products_and_other_work(called, processor, elapsed, idle):
    assert is_idle(called, processor, elapsed) is idle
