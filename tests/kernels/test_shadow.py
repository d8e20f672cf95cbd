"""Classes that gradients have met are decided by shadow calls, on this processor."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import lcma
from lcma.kernels import Request, contenders, learning, plan_for, shadow
from lcma.kernels.cpu.machine import profile_for
from lcma.kernels.planning.wisdom import stored_wisdom

from ..refusal import refuses

SIZES = 120, 104, 136
"""The operator plans small products, too; dA and dB permute the sizes."""

EAGER = 656, 648, 664
"""Sizes that `lcma.matmul` does not leave to the library."""


@pytest.fixture
def learner(settled_home, own_learner, timed_by_table, monkeypatch):
    """A learner whose contenders' seconds are those of a table: a scheme takes 3 ms, the library 4 ms."""
    timed_by_table({"vendor": 4e-3, "scheme": 3e-3})
    vendors = contenders.vendor_plans
    monkeypatch.setattr(contenders, "vendor_plans", lambda *given: vendors(*given)[:1])
    return own_learner


@pytest.fixture
def busy(monkeypatch):
    """The process is never idle."""
    monkeypatch.setattr(shadow, "is_idle", lambda *_: False)


@pytest.fixture
def waiting(learner, busy):
    """The learner, after two steps of training: their classes wait."""
    step()
    step()
    return learner


def step(seed=0):
    """Run a step of training through the operator; its product and gradients must be right."""
    from lcma.kernels.torch.ops import bilinear_mm

    m, k, n = SIZES
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(shape, generator=generator).requires_grad_() for shape in ((m, k), (k, n)))
    c = bilinear_mm(a, b, "auto")
    grad = torch.randn(c.shape, generator=generator)
    c.backward(grad)
    pairs = (c, a.double() @ b.double()), (a.grad, grad.double() @ b.double().T), (b.grad, a.double().T @ grad.double())
    for found, wanted in pairs:
        assert float((found - wanted).detach().norm() / wanted.detach().norm()) < 1e-5


def shapes():
    """Return the sizes of a step's three products."""
    m, k, n = SIZES
    return {(m, k, n), (m, n, k), (k, m, n)}


def strategy():
    """Return the strategy of the forward product where nothing is learned."""
    with learning.paused():
        return plan_for(Request(*SIZES)).candidate.strategy


def test_classes_of_gradients_are_decided_on_demand_stored_and_used(learner, busy, wait_for):
    assert strategy() == "vendor"
    step()
    assert learner.shadow.queue.waiting() == []  # each was met once
    step()
    assert {key[0].shape for key in learner.shadow.queue.waiting()} == shapes()
    lines = []
    found = lcma.learn(on_event=lines.append)
    assert len(found) == len(lines) == 3
    assert all("scheme" in one.winner and one.ratio == pytest.approx(4 / 3) for one in found)
    assert "1.333 times as fast as the library's product" in lines[0]
    assert learner.shadow.queue.waiting() == []
    wait_for(lambda: len(getattr(stored_wisdom(profile_for().id), "records", ())) == 3)
    wait_for(lambda: strategy() == "scheme")
    step()
    assert lcma.learn() == []


@pytest.fixture
def idle(monkeypatch):
    """The process is idle between calls of products."""
    monkeypatch.setattr(shadow, "IDLE_SECONDS", 0.02)
    monkeypatch.setattr(shadow, "is_idle", lambda called, *_: not called)


def test_idle_time_decides_the_same_classes(learner, idle, monkeypatch, wait_for):
    for may in ("may_start", "may_go_on"):
        monkeypatch.setattr(shadow, may, lambda spent, elapsed: True)
    step()
    step()
    wait_for(lambda: learner.shadow.queue._met and not learner.shadow.queue.waiting())
    wait_for(lambda: len(getattr(stored_wisdom(profile_for().id), "records", ())) >= 3)
    assert learner.shadow.spent > 0.0
    step()


def test_nothing_is_decided_in_idle_time_beyond_its_share(learner, idle, monkeypatch):
    monkeypatch.setattr(shadow, "may_start", lambda spent, elapsed: False)
    step()
    step()
    time.sleep(0.2)
    assert len(learner.shadow.queue.waiting()) == 3
    assert learner.shadow.spent == 0.0


@pytest.mark.parametrize("reason", ["the environment", "paused", "deterministic", "a process group"])
def test_where_nothing_is_learned_nothing_is_queued(learner, switched_off, reason):
    with switched_off(reason):
        for _ in range(3):
            step()
        if reason != "paused":
            refuses("nothing can be learned: ", lcma.learn)
    assert not learner.shadow.queue._met
    assert learner.shadow._thread is None


def test_classes_of_pauses_limits_and_rings_are_not_queued_and_those_of_factors_are(learner, busy):
    from lcma.kernels.torch.ops import bilinear_mm

    a, b = (torch.randn(shape, requires_grad=True) for shape in (SIZES[:2], SIZES[1:]))
    for _ in range(3):
        with learning.paused():
            c = bilinear_mm(a, b, "auto")
        c.sum().backward()
    assert not learner.shadow.queue._met
    with learning.deferred():
        for options in ({"max_error": 1.0}, {"max_workspace": 1 << 30}, {"ring": "GF(7)"}):
            dtype = np.int64 if "ring" in options else np.float32
            lcma.matmul(*(np.ones(shape, dtype) for shape in (SIZES[:2], SIZES[1:])), **options)
    assert learner.shadow.queue.known() == []
    layer, x = lcma.LowRankLinear(64, 48, 8), torch.randn(40, 64, requires_grad=True)
    for _ in range(2):
        layer(x).sum().backward()
    found = [key[0].structures[0].name for key in learner.shadow.queue.waiting()]
    assert sorted(found) == ["low-rank 48x64, r 8", "low-rank 64x48, r 8"]  # W x, and the gradient of x


def test_operands_that_take_too_much_memory_are_not_drawn(waiting, monkeypatch):
    from lcma.kernels.cpu import machine

    monkeypatch.setattr(machine, "free_bytes", lambda: 8.0 * SIZES[0] * SIZES[1])
    lines = []
    assert lcma.learn(on_event=lines.append) == []
    assert len(lines) == 3
    assert all("left to what is known: it needs " in line and " GB are free" in line for line in lines)
    assert strategy() == "vendor"


def test_what_is_not_decided_in_the_time_stays_queued_and_the_thread_ends(waiting):
    lines = []
    assert lcma.learn(seconds=0, on_event=lines.append) == []
    assert all("call again with more seconds" in line for line in lines)
    assert len(lines) == len(waiting.shadow.queue.waiting()) == 3
    assert len(lcma.learn()) == 3
    thread = waiting.shadow._thread
    waiting.end()
    assert not thread.is_alive()
    waiting.shadow.meet((Request(*SIZES), 1), 2)
    assert waiting.shadow._thread is thread


def test_an_interrupted_decision_goes_on_with_the_next_one(waiting, monkeypatch):
    running = type(plan_for(Request(*EAGER)).build())
    original, calls = running.run, []

    def interrupted(self, a, b, out=None):
        calls.append(1)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return original(self, a, b, out)

    monkeypatch.setattr(running, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lcma.learn()
    assert len(lcma.learn()) == 3


def test_calls_of_other_threads_are_right_while_classes_are_decided(waiting):
    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(lambda: [step(seed=seed) for seed in range(5)]) for _ in range(3)]
        assert {one.request.shape for one in lcma.learn()} == shapes()
    for other in others:
        other.result()


def test_a_forked_child_starts_without_the_queue_and_fills_its_own(waiting, in_a_child):
    def starts_anew():
        fresh = not waiting.shadow.queue._met and waiting.shadow._thread is None
        waiting.shadow.meet((Request(*SIZES), 1), 2)
        return fresh and waiting.shadow._thread.is_alive()

    assert waiting.shadow._thread is not None
    assert in_a_child(starts_anew)


def test_without_a_thread_classes_are_decided_on_demand(learner, monkeypatch):
    start = threading.Thread.start

    def refuse(self):
        if self.name == "lcma-shadow":
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    step()
    with pytest.warns(UserWarning, match="can't start new thread"):
        step()
    assert len(lcma.learn()) == 3


def test_an_eager_class_that_is_being_learned_is_decided_too(learner, busy, wait_for):
    a, b = (np.ones(shape, np.float32) for shape in (EAGER[:2], EAGER[1:]))
    lcma.matmul(a, b)
    wait_for(lambda: learner.lessons())
    (found,) = lcma.learn()
    assert found.request.shape == EAGER
    assert "scheme" in found.winner
    np.testing.assert_allclose(lcma.matmul(a, b), a @ b, rtol=1e-5)


def test_a_class_that_a_graph_captures_waits_at_once_and_nothing_is_learned_meanwhile(learner, busy, monkeypatch):
    a, b = (np.ones(shape, np.float32) for shape in (EAGER[:2], EAGER[1:]))
    monkeypatch.setattr(learning, "_captures", lambda torch: True)
    np.testing.assert_array_equal(lcma.matmul(a, b), a @ b)
    assert [key[0].shape for key in learner.shadow.queue.waiting()] == [EAGER]
    assert learner.lessons() == []
    refuses("while a CUDA graph is captured; call learn before", lcma.learn)
    monkeypatch.setattr(learning, "_captures", lambda torch: False)
    assert [one.request.shape for one in lcma.learn()] == [EAGER]
