"""Contests: calls whose results are judged first, then timed in turns, so that a slow minute hits all of them alike."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import VerificationError
from ...kernels.arrays import torch
from ...kernels.cuda import clock
from ..gpu_nvml import GpuMonitor, GpuState

Call = Callable[[], Any]
Calls = Mapping[str, Call]
"""Contenders by name."""

Judge = Callable[[str, Any], float]
"""Returns the error of a contender's result; raises VerificationError where it is too large."""


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


class Clock:
    """Times calls in turns: the mean seconds of each in a turn, after rounds of warming up that are discarded."""

    discarded = 1

    def seconds(self, call: Call) -> float:
        """Seconds of one turn of a call; here the call returns them."""
        return float(call())

    def time(self, calls: Calls, rounds: int, on_round: Callable[[int], None]) -> dict[str, Timing]:
        """Time every call once a round, after rounds of warming up that are discarded.

        Each round begins with another one: who follows whom, on warm or cold caches, does not decide.
        """
        samples: dict[str, list[float]] = {name: [] for name in calls}
        names = list(calls)
        for number in range(rounds + self.discarded):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                samples[name].append(self.seconds(calls[name]))
            on_round(number)
        return {name: Timing(name, tuple(seconds[self.discarded :])) for name, seconds in samples.items()}


@dataclass(frozen=True)
class CpuClock(Clock):
    """The processor's clock: the mean of `count` calls a turn, until `wait` says that a device has done them, or with
    `queued` until they are queued."""

    count: int = 1
    wait: Callable[[], object] = lambda: None
    queued: bool = False

    def seconds(self, call: Call) -> float:
        start = time.perf_counter()
        for _ in range(self.count):
            call()
        if not self.queued:
            self.wait()
        seconds = (time.perf_counter() - start) / self.count
        self.wait()
        return seconds


@dataclass(frozen=True)
class CudaClock(Clock):
    """Events of the current GPU: `spent` seconds a turn; `warmed`: each after a run that is discarded."""

    spent: float = 0.02
    warmed: bool = False

    def time(self, calls: Calls, rounds: int, on_round: Callable[[int], None]) -> dict[str, Timing]:
        """See `kernels.cuda.clock.interleaved`."""
        found = clock.interleaved(calls, rounds, self.spent, on_round, self.warmed)
        return {name: Timing(name, tuple(seconds)) for name, seconds in found.items()}


class FlushedClock(Clock):
    """Events of the current GPU, one call a turn with the L2 flushed before it."""

    discarded = 2

    def __init__(self) -> None:
        self._flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")

    def seconds(self, call: Call) -> float:
        self._flush.zero_()
        return clock.seconds_of(call)


def clock_of(device: str, spent: float = 0.02) -> Clock:
    """The clock of "cpu" or "cuda"."""
    return CudaClock(spent) if device == "cuda" else CpuClock()


class Timings(dict[str, Timing]):
    """What a contest measured: timings and errors of its contenders by name, and what the GPU did meanwhile."""

    errors: Mapping[str, float]
    gpu: GpuState | None

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

    def ratios(self, baseline: Timing, names: Iterable[str] | None = None) -> dict[str, float]:
        """How many times as fast as a baseline contenders are (None: all)."""
        return {name: ratio_to(baseline, self[name]) for name in (self if names is None else names)}

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
    """Calls of one device that are judged, if there is a judge, and then take turns: warmed up, interleaved, each round
    begun by another one. `monitored`: clock and power of the current GPU are read meanwhile."""

    calls: Calls
    rounds: int
    clock: Clock = field(default_factory=CpuClock)
    say: Callable[[str], None] = lambda _: None
    judge: Judge | None = None
    monitored: bool = False

    def run(self) -> Timings:
        """Time all of them.

        Raises:
            VerificationError: a result is wrong; nothing was timed.
        """
        errors: dict[str, float] = {}
        for name, call in self.calls.items() if self.judge is not None else ():
            self.say(f"compiling and checking {name}")
            errors[name] = self.judge(name, call())  # type: ignore[misc]
        gc.collect()  # results, and what else would be freed during a turn
        with GpuMonitor() if self.monitored else nullcontext() as monitor:
            times = self.clock.time(
                self.calls, self.rounds, lambda number: self.say(f"round {number} of {self.rounds}")
            )
        found = Timings(times)
        found.errors, found.gpu = errors, None if monitor is None else monitor.state
        return found


def within(error_of: Callable[[Any], float], limit: float, what: str = "error") -> Judge:
    """The judge of results whose error is at most `limit`; see `require_right`."""
    return lambda name, result: require_right(name, error_of(result), limit, what)


def poisoned(out: Any, judge: Judge, value: float = math.nan) -> Judge:
    """A judge of calls that write `out`, an array or a tensor, which holds nothing but `value` before each of them."""
    out[...] = value

    def judged(name: str, _: object) -> float:
        error = judge(name, out)
        out[...] = value
        return error

    return judged


class Truth:
    """Rows of A B in float64 (None: all), of arrays or tensors; `masked`: the lower triangle of all."""

    def __init__(self, a: Any, b: Any, rows: int | None = None, masked: bool = False) -> None:
        count = len(a) if rows is None else min(rows, len(a))
        self._rows = np.linspace(0, len(a) - 1, count).astype(int).tolist()
        product = _wide(a[self._rows]) @ _wide(b)
        self._product = np.tril(product) if masked else product

    def error(self, c: Any) -> float:
        """||C - A B|| / ||A B|| of those rows, in the Frobenius norm."""
        return relative(c[self._rows], self._product)


def relative(c: Any, truth: Any) -> float:
    """||C - T|| / ||T|| of arrays or tensors, in the Frobenius norm and in double precision; ||C|| where T is zero."""
    wide = _wide(truth)
    return _norm(_wide(c) - wide) / (_norm(wide) or 1.0)


def _wide(x: Any) -> Any:
    return x.astype(np.result_type(x, np.float64), copy=False) if isinstance(x, np.ndarray) else x.double()


def _norm(x: Any) -> float:
    return float(np.linalg.norm(x) if isinstance(x, np.ndarray) else x.norm())


def require_right(name: str, error: float, limit: float, what: str = "error") -> float:
    """Return the error.

    Raises:
        VerificationError: it is greater than the limit, or not a number.
    """
    if not error <= limit:
        raise VerificationError(f"{name} came out wrong: {what} {error:.1e}; nothing was timed")
    return float(error)


def ratio_to(baseline: Timing, timing: Timing) -> float:
    """The speed-up over the baseline: the ratio of the medians."""
    return baseline.median / timing.median


def paired_ratios(baseline: Timing, timing: Timing) -> npt.NDArray[np.float64]:
    """How many times faster than the baseline, by the rounds of both."""
    rounds = min(len(baseline.seconds), len(timing.seconds))
    return np.array(baseline.seconds[:rounds]) / np.array(timing.seconds[:rounds])


def paired_interval(baseline: Timing, timing: Timing) -> tuple[float, float]:
    """The 95% bootstrap interval of the median, over rounds of both, of how many times faster than the baseline."""
    ratios = paired_ratios(baseline, timing)
    picks = np.random.default_rng(0).integers(0, len(ratios), (2000, len(ratios)))
    lower, upper = np.quantile(np.median(ratios[picks], axis=1), (0.025, 0.975))
    return float(lower), float(upper)
