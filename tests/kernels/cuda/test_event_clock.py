"""The clock of a GPU's calls, with events of a table."""

from __future__ import annotations

import pytest

from lcma.kernels.cuda import event_clock


class Event:
    def __init__(self, milliseconds):
        self.milliseconds, self.passed = milliseconds, True

    def query(self):
        return self.passed

    def elapsed_time(self, other):
        return other.milliseconds - self.milliseconds


@pytest.mark.parametrize(("gpu_ms", "host", "queued", "seconds"), [
    (2.0, 1e-3, False, 2e-3), (0.02, 1e-4, False, 1e-4), (2.0, 9e-3, True, 2e-3),
])  # fmt: skip
def test_a_call_takes_as_long_as_the_slower_of_gpu_and_host(monkeypatch, gpu_ms, host, queued, seconds):
    events, times = iter([began := Event(5.0), ended := Event(5.0 + gpu_ms)]), iter([1.0, 1.0 + host])
    began.passed = not queued
    monkeypatch.setattr(event_clock, "_recorded", lambda: next(events))
    monkeypatch.setattr(event_clock.time, "perf_counter", lambda: next(times))
    clock = event_clock.EventClock()
    reading = clock.end(clock.begin())
    assert clock.seconds(reading) == pytest.approx(seconds)
    ended.passed = False
    assert clock.seconds(reading) is None
