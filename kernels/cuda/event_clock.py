"""The clock of calls on a GPU: events that nobody waits for, and the host's time."""

from __future__ import annotations

import time
from typing import Any

from ..arrays import torch


class EventClock:
    """A `planning.trials.lesson.Clock` of the current stream: two events a call, read once they have passed.

    The time of a call is the GPU's, or the host's if that is longer: a loop of such calls takes the longer one. Where
    the GPU has not come to a call before its host part ends, the host may have waited for room in the queue.
    Events that were read are recorded again: to create and to destroy one takes longer than to record it.
    """

    def __init__(self) -> None:
        self._spare: dict[int, list[Any]] = {}
        """Events by the index of their GPU."""

    def begin(self) -> Any:
        return self._recorded(), time.perf_counter()

    def end(self, began: tuple[Any, float]) -> tuple[Any, Any, float]:
        event, before = began
        host = time.perf_counter() - before if event.query() else 0.0
        return event, self._recorded(), host

    def seconds(self, reading: tuple[Any, Any, float]) -> float | None:
        began, ended, host = reading
        if not ended.query():
            return None
        seconds = float(began.elapsed_time(ended)) / 1e3
        for event in (began, ended):
            self._spare.setdefault(event.device.index, []).append(event)
        return max(seconds, host)

    def _recorded(self) -> Any:
        spare = self._spare.get(torch._C._cuda_getDevice())
        event = spare.pop() if spare else torch.cuda.Event(enable_timing=True)
        event.record()
        return event
