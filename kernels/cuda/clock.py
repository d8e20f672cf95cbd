"""Seconds of work on a GPU, by its own events."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
