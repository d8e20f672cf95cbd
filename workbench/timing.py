"""Interleaved timing: contenders take turns, so that a slow minute of the machine hits all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[Any]


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
        lower, _, upper = (
            statistics.quantiles(self.seconds, n=4, method="inclusive") if len(self.seconds) > 1 else (self.seconds * 3)
        )
        return lower, upper


def stopwatch(call: Callable[[], object]) -> Callable[[], float]:
    """The same call, which returns its seconds."""

    def timed() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return timed


def in_turns(
    contenders: Mapping[str, Callable[[], float]], rounds: int, on_round: Callable[[int], None] = lambda _: None
) -> dict[str, Timing]:
    """Call every contender, which returns its seconds, once a round, after a round of warming up that is not counted.

    Each round begins with another one: who follows whom, on warm or cold caches, does not decide.
    """
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(rounds + 1):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            seconds = contenders[name]()
            if number:
                samples[name].append(seconds)
        on_round(number)
    return {name: Timing(name, tuple(seconds)) for name, seconds in samples.items()}


def interleaved(
    contenders: Mapping[str, Callable[[], object]], rounds: int, on_round: Callable[[int], None] = lambda _: None
) -> dict[str, Timing]:
    """`in_turns`, of calls that are timed here."""
    return in_turns({name: stopwatch(call) for name, call in contenders.items()}, rounds, on_round)


def ratio_to(baseline: Timing, timing: Timing) -> float:
    """The speed-up over the baseline: the ratio of the medians."""
    return baseline.median / timing.median


def paired_interval(baseline: Timing, timing: Timing, seed: int = 0, draws: int = 2000) -> tuple[float, float]:
    """The 95% bootstrap interval of the median, over rounds of both, of how many times faster than the baseline."""
    rounds = min(len(baseline.seconds), len(timing.seconds))
    ratios = np.array(baseline.seconds[:rounds]) / np.array(timing.seconds[:rounds])
    picks = np.random.default_rng(seed).integers(0, len(ratios), (draws, len(ratios)))
    lower, upper = np.quantile(np.median(ratios[picks], axis=1), (0.025, 0.975))
    return float(lower), float(upper)


def gflops(m: int, k: int, n: int, seconds: float) -> float:
    """Effective GFLOP/s: those of the classical product, 2 m k n / seconds."""
    return 2e-9 * m * k * n / seconds


class FrobeniusTruth:
    """A B in float64, to measure relative errors in the Frobenius norm against; `masked`: its lower triangle."""

    def __init__(self, a: Matrix, b: Matrix, masked: bool = False) -> None:
        self._truth = a.astype(np.float64) @ b.astype(np.float64)
        if masked:
            self._truth = np.tril(self._truth)
        self._norm = float(np.linalg.norm(self._truth))

    def error(self, got: Matrix) -> float:
        """||got - A B|| / ||A B||."""
        difference = float(np.linalg.norm(got - self._truth))
        return difference / self._norm if self._norm else difference
