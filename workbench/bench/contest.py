"""Interleaved timing: contenders take turns, so that a slow minute of the machine hits all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ...kernels import Plan

Matrix = npt.NDArray[Any]

Told = tuple[str, dict[str, Any]]
"""A line for people, and what it tells as JSON."""


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


class ContestClock(Protocol):
    """Times calls in turns."""

    def time(
        self, calls: Mapping[str, Callable[[], object]], rounds: int, on_round: Callable[[int], None]
    ) -> dict[str, Timing]:
        """Seconds of every call over the rounds, without those of warming up."""
        ...


@dataclass(frozen=True)
class CpuClock:
    """The processor's clock: one call a turn."""

    def time(
        self, calls: Mapping[str, Callable[[], object]], rounds: int, on_round: Callable[[int], None]
    ) -> dict[str, Timing]:
        """See `in_turns`."""
        return in_turns({name: stopwatch(call) for name, call in calls.items()}, rounds, on_round)


@dataclass(frozen=True)
class CudaClock:
    """Events of the current GPU: `spent` seconds a turn; `warmed`: each after a run that is discarded."""

    spent: float = 0.02
    warmed: bool = False

    def time(
        self, calls: Mapping[str, Callable[[], object]], rounds: int, on_round: Callable[[int], None]
    ) -> dict[str, Timing]:
        """See `kernels.cuda.clock.interleaved`."""
        from ...kernels.cuda import clock

        found = clock.interleaved(calls, rounds, self.spent, on_round, self.warmed)
        return {name: Timing(name, times.seconds) for name, times in found.items()}


def clock_of(device: str, spent: float = 0.02, warmed: bool = False) -> ContestClock:
    """The clock of "cpu" or "cuda"."""
    return CudaClock(spent, warmed) if device == "cuda" else CpuClock()


class Timings(dict[str, Timing]):
    """What a contest measured: the timings of its contenders by name."""

    @property
    def medians(self) -> dict[str, float]:
        """Median seconds."""
        return {name: timing.median for name, timing in self.items()}

    @property
    def ms(self) -> dict[str, float]:
        """Median milliseconds."""
        return {name: 1e3 * timing.median for name, timing in self.items()}

    @property
    def quartiles_s(self) -> dict[str, list[float]]:
        """Lower and upper quartile in seconds."""
        return {name: list(timing.quartiles) for name, timing in self.items()}

    def fastest(self, names: Iterable[str]) -> Timing:
        """The contender with the least median among some."""
        return min((self[name] for name in names), key=lambda timing: timing.median)

    def against(self, baseline: Timing, name: str) -> dict[str, Any]:
        """The figures of a row: the baseline, how many times as fast a contender is, with the 95% interval, and ms."""
        ours = self[name]
        return {
            "baseline": baseline.name,
            "ratio": ratio_to(baseline, ours),
            "interval": list(paired_interval(baseline, ours)),
            "ms": self.ms,
        }


@dataclass(frozen=True)
class Contest:
    """Calls that take turns on one device: warmed up, interleaved, each round begun by another one."""

    calls: Mapping[str, Callable[[], object]]
    rounds: int
    clock: ContestClock = field(default_factory=CpuClock)
    say: Callable[[str], None] = lambda _: None

    def run(self) -> Timings:
        """Time all of them."""

        def on_round(number: int) -> None:
            self.say(f"round {number} of {self.rounds}")

        return Timings(self.clock.time(self.calls, self.rounds, on_round))


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


def ran(plan: Plan, where: str, device: object, seconds: float, unit: str = "GFLOP/s") -> Told:
    """Return the line and the facts of a product that was run once; `where` follows the request in the line."""
    request = plan.request
    rate = request.items * gflops(*request.shape, seconds)
    line = f"{plan.candidate}: {request}{where}: {seconds:.3f} s, {rate:.1f} effective {unit}"
    facts = {"candidate": str(plan.candidate), "product": str(request), "device": str(device)}
    return f"{line} (first call, compiling included)", facts | {"seconds": seconds, "effective_gflops": rate}


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
