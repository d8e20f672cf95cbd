"""Times of a structured layer beside the dense one that it replaces, at numbers of inputs that the caller names."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from ..learning import paused

ROUNDS, SPENT = 7, 0.005
"""Rounds in which both layers run in turn, and the seconds of each in a round, at least one call."""


def measured_ratios(dense: nn.Module, structured: Any, rows: Sequence[int]) -> tuple[tuple[int, float], ...]:
    """Return for each number of inputs the dense layer's median seconds over the structured one's, of eager calls.

    `structured` is a `FactoredLinear`. Calls record no gradients, and the host's time counts: with few inputs factors
    are slower where their launches take longer than reading the dense weight. Products use plans that are known, and
    nothing is learned.
    """
    weight: Any = next(structured.parameters())
    found = []
    with torch.no_grad(), paused():
        for count in rows:
            x = torch.randn(count, structured.in_features, dtype=weight.dtype, device=weight.device)
            found.append((count, _ratio(partial(dense, x), partial(structured, x), weight.device)))
    return tuple(found)


def _ratio(first: Callable[[], Any], second: Callable[[], Any], device: torch.device) -> float:
    """Return the median seconds of the first call over those of the second, in rounds of both."""
    calls = first, second
    repeats = []
    for call in calls:
        call()  # plans, and compiles
        repeats.append(math.ceil(SPENT / max(_seconds(call, 1, device), 1e-9)))
    times: tuple[list[float], list[float]] = [], []
    for number in range(ROUNDS):
        for place in (0, 1) if number % 2 else (1, 0):
            times[place].append(_seconds(calls[place], repeats[place], device))
    return statistics.median(times[0]) / statistics.median(times[1])


def _seconds(call: Callable[[], Any], repeats: int, device: torch.device) -> float:
    """Return the seconds of one of so many calls, which the device has finished."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None  # calls on a processor have ended
    wait()
    began = time.perf_counter()
    for _ in range(repeats):
        call()
    wait()
    return (time.perf_counter() - began) / repeats
