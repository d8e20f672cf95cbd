"""Interleaved timing: contenders take turns, so that a slow minute of the machine hits all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Timing:
    """Seconds of one contender over the rounds."""

    name: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        lower, _, upper = statistics.quantiles(self.seconds, n=4, method="inclusive") if len(self.seconds) > 1 else (
            self.seconds * 3)
        return lower, upper


def interleaved(contenders: Mapping[str, Callable[[], object]], rounds: int,
                on_round: Callable[[int], None] = lambda _: None) -> dict[str, Timing]:
    """Time every contender once a round, after one round of warming up that is not counted."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, call in contenders.items():
            start = time.perf_counter()
            call()
            if number:
                samples[name].append(time.perf_counter() - start)
        on_round(number)
    return {name: Timing(name, tuple(seconds)) for name, seconds in samples.items()}


def ratio_to(baseline: Timing, timing: Timing) -> float:
    """How many times faster than the baseline: the ratio of the medians."""
    return baseline.median / timing.median


def gflops(m: int, k: int, n: int, seconds: float) -> float:
    """Effective GFLOP/s: those of the classical product, 2 m k n / seconds."""
    return 2e-9 * m * k * n / seconds


def relative_error(got: npt.NDArray[np.floating], a: npt.NDArray[np.floating], b: npt.NDArray[np.floating],
                   masked: bool = False) -> float:
    """||got - A B|| / ||A B|| in the Frobenius norm, A B in float64; a strip of rows at a time.

    With `masked` only the lower triangle of A B is wanted.
    """
    wide = b.astype(np.float64)
    difference = total = 0.0
    step = max(1, (64 << 20) // max(1, 8 * b.shape[1]))
    for start in range(0, a.shape[0], step):
        rows = slice(start, min(start + step, a.shape[0]))
        truth = a[rows].astype(np.float64) @ wide
        if masked:
            truth = np.tril(truth, start)
        difference += float(((got[rows] - truth) ** 2).sum())
        total += float((truth**2).sum())
    return float(np.sqrt(difference / total)) if total else float(difference > 0)
