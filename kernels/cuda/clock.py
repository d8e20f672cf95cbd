"""Seconds of work on a GPU, by its own events: of calls that are waited for, and of those that nobody waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ..arrays import torch

HOPELESS, FEW = 4.0, 2
"""A contender this many times as slow as the fastest is timed in this few rounds: no result depends on it."""


def seconds_of(call: Callable[[], object], repeats: int = 1) -> float:
    """Return the seconds of one call, as the mean of `repeats` in a row."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        call()
    stop.record()
    stop.synchronize()
    return float(start.elapsed_time(stop)) / 1e3 / repeats


def interleaved(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int,
    spent: float = 0.02,
    on_round: Callable[[int], None] = lambda _: None,
    warmed: bool = False,
) -> dict[str, list[float]]:
    """Return the seconds of every contender, timed once per round: heat and power limits affect all equally.

    A first round is discarded. A contender runs for about `spent` seconds per round, at least once. Each round starts
    with another one, after an equally long discarded run of it: the first one after a pause runs faster. With `warmed`
    every run follows such a discarded one: else a product that comes after one bound by memory is timed on a cooler
    GPU.
    A contender slower than `spent` and HOPELESS times as slow as the fastest is timed in FEW rounds only.
    """
    once = {name: max(_after_warming(call), 1e-7) for name, call in contenders.items()}
    repeats = {name: max(1, round(spent / seconds)) for name, seconds in once.items()}
    slow = {name for name, seconds in once.items() if seconds > max(spent, HOPELESS * min(once.values()))}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        on_round(number)
        names = [name for name in contenders if number <= FEW or name not in slow]
        turn = number % len(names)
        for place, name in enumerate(names[turn:] + names[:turn]):
            if warmed or not place:
                seconds_of(contenders[name], repeats[name])
            seconds = seconds_of(contenders[name], repeats[name])
            if number:
                samples[name].append(seconds)
    return samples


def _after_warming(call: Callable[[], object]) -> float:
    seconds_of(call)
    return seconds_of(call)


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
