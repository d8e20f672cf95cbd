"""The clock of a GPU's calls, with events of a table."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from lcma.kernels.cuda import event_clock


class Event:
    """Records the next of some times in milliseconds, and has passed unless it is said to be queued."""

    def __init__(self, times, device):
        self.times, self.device, self.passed = times, SimpleNamespace(index=device), True

    def record(self):
        self.milliseconds = next(self.times)

    def query(self):
        return self.passed

    def elapsed_time(self, other):
        return other.milliseconds - self.milliseconds


@pytest.fixture
def gpu(monkeypatch):
    """A stand-in for a GPU: `made` lists its events, `device` is the current one, `times` are those of the records."""
    found = SimpleNamespace(made=[], device=0, times=iter(()))

    def make(enable_timing):
        assert enable_timing
        found.made.append(Event(found.times, found.device))
        return found.made[-1]

    monkeypatch.setattr(torch.cuda, "Event", make)
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: found.device, raising=False)
    return found


@pytest.mark.parametrize(("gpu_ms", "host", "queued", "seconds"), [
    (2.0, 1e-3, False, 2e-3), (0.02, 1e-4, False, 1e-4), (2.0, 9e-3, True, 2e-3),
])  # fmt: skip
def test_a_call_takes_as_long_as_the_slower_of_gpu_and_host(monkeypatch, gpu, gpu_ms, host, queued, seconds):
    gpu.times, times = iter([5.0, 5.0 + gpu_ms]), iter([1.0, 1.0 + host])
    monkeypatch.setattr(event_clock.time, "perf_counter", lambda: next(times))
    clock = event_clock.EventClock()
    started = clock.begin()
    gpu.made[0].passed = not queued
    reading = clock.end(started)
    gpu.made[1].passed = False
    assert clock.seconds(reading) is None
    gpu.made[1].passed = True
    assert clock.seconds(reading) == pytest.approx(seconds)


def test_events_are_recorded_again_once_they_were_read_on_their_gpu(gpu):
    gpu.times = iter(range(1, 100))
    clock = event_clock.EventClock()
    first, second = clock.end(clock.begin()), clock.end(clock.begin())
    assert (clock.seconds(first), clock.seconds(second), len(gpu.made)) == (1e-3, 1e-3, 4)
    third = clock.end(clock.begin())
    assert (clock.seconds(third), len(gpu.made)) == (1e-3, 4)
    gpu.device = 1
    assert (clock.seconds(clock.end(clock.begin())), len(gpu.made)) == (1e-3, 6)
