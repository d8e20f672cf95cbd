"""Predicted seconds on a GPU: products by measured rates and whole waves of tiles, sums by measured bandwidth."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from ..profile import GemmRate, Profile
from ..strategy import Stage
from .dtypes import itemsize
from .three_stage import Way

TILES = {(128, 256): 1.0, (128, 128): 0.95, (64, 128): 0.85, (64, 64): 0.7}
"""Rows and columns of C that the vendor's kernels give one multiprocessor, and the part of the best rate they reach."""

SPLIT_BELOW, LEAST_PART, SPLIT_SHARE = 4, 512, 0.97
"""The sum over k is split below so many waves of tiles, into parts of at least so much, at so much of the rate."""

MULTIPROCESSORS = "multiprocessors"
"""Where a profile's versions say how many there are."""

START = 2e-6
"""Seconds from the start of a tile to its first multiplication, and from the last to the end: latencies of memory."""

Sizes = tuple[int, int, int]


def mode_of(way: Way | None = None, count: int = 1) -> str:
    """The mode under which a profile keeps rates: one product, so many in a stack, or a loop with B~ transposed."""
    if way is None:
        return "whole"
    return str(way) if way is Way.LOOP else f"{way} {count}"


@lru_cache(maxsize=4096)
def filled(m: int, k: int, n: int, count: int, units: int) -> float:
    """The part of a GPU's rate that `count` products of this size can use: whole waves of whole tiles.

    The vendor takes smaller tiles where large ones leave multiprocessors without work, and splits
    the sum over k where there are too few of any; both cost some of the rate.
    """
    best = 0.0
    for (rows, cols), share in TILES.items():
        tiles = -(-m // rows) * -(-n // cols) * count
        used = share * m * n * count / (tiles * rows * cols)
        best = max(best, used * tiles / (-(-tiles // units) * units))
        parts = 2
        while tiles < SPLIT_BELOW * units and k >= parts * LEAST_PART:
            best = max(best, SPLIT_SHARE * used * tiles * parts / (-(-tiles * parts // units) * units))
            parts *= 2
    return best


def waiting(m: int, n: int, count: int, units: int) -> float:
    """Seconds in which waves of tiles wait for their first operands, where `count` products begin together."""
    (rows, cols), *_ = TILES
    return START * -(-(-(-m // rows) * -(-n // cols) * count) // units)


class Rates:
    """What a profile knows of the products of one dtype.

    The measured rate is that of the neighbouring cubes, by the logarithm of the size, times how
    much better or worse a shape fills whole waves of whole tiles than the cubes do. What a shape
    that is no cube reads and writes more than the cube of as many flops comes on top, and so does
    what every wave of tiles waits for its first operands: sums over a short k are dear.
    """

    def __init__(self, profile: Profile, dtype: str) -> None:
        self.units = int(dict(profile.versions).get(MULTIPROCESSORS, 1))
        self._each = itemsize(dtype) / (profile.bandwidth or math.inf)
        self._modes: dict[str, list[GemmRate]] = {}
        for row in profile.gemm:
            if row.dtype == dtype:
                self._modes.setdefault(row.mode, []).append(row)
        together = (mode.split() for mode in self._modes if " " in mode)
        self._counts: dict[str, list[int]] = {}
        for way, count in sorted((way, int(count)) for way, count in together):
            self._counts.setdefault(way, []).append(count)
        self._curves: dict[str, list[tuple[float, float]]] = {}

    @property
    def best(self) -> float:
        """The best rate that was measured, flops per second."""
        return max((row.rate for rows in self._modes.values() for row in rows), default=math.inf)

    def seconds(self, sizes: Sizes, count: int = 1, way: Way | None = None) -> float | None:
        """Seconds of `count` products of one size; None where no such rate was measured."""
        curve = self._curve(way, count)
        if not curve:
            return None
        m, k, n = sizes
        side = (m * k * n) ** (1 / 3)
        speed = _between(curve, side)
        at_once = count if way in self._counts else 1
        working = 2 * m * k * n * count / (speed * filled(m, k, n, at_once, self.units))
        moving = count * (m * k + k * n + m * n - 3 * side**2) * self._each
        return working + moving + count // at_once * waiting(m, n, at_once, self.units)

    def _curve(self, way: Way | None, count: int) -> list[tuple[float, float]]:
        """Sizes and flops per second at full waves, smallest size first."""
        modes = {mode_of(way): 1}
        if counts := self._counts.get(way or ""):
            nearest = min(counts, key=lambda known: abs(math.log(known / count)))
            # The stack nearest in number, and a smaller one's figures at sizes that it was not measured at.
            modes = {mode_of(way, known): known for known in counts if known <= nearest}
        key = " ".join(modes)
        if key not in self._curves:
            speeds: dict[float, float] = {}
            for mode, batch in modes.items():
                for row in self._modes.get(mode, ()):
                    size = (row.m * row.k * row.n) ** (1 / 3)
                    work = 2 * row.m * row.k * row.n * batch
                    taken = work / row.rate
                    taken -= min(waiting(row.m, row.n, batch, self.units), taken / 2)
                    speeds[size] = work / taken / filled(row.m, row.k, row.n, batch, self.units)
            self._curves[key] = sorted(speeds.items())
        return self._curves[key]


def _between(curve: list[tuple[float, float]], size: float) -> float:
    first, speed = curve[0]
    if size <= first:
        return speed * size / first  # smaller than all measured: mostly latency, so that the rate falls with the size
    for (low, slow), (high, fast) in pairwise(curve):
        if size <= high:
            part = math.log(size / low) / math.log(high / low)
            return slow ** (1 - part) * fast**part
    return curve[-1][1]


def timed(stages: list[Stage], dtype: str, way: Way | None, profile: Profile) -> list[Stage]:
    """The stages with their seconds, where the profile knows them."""
    rates, overhead = Rates(profile, dtype), profile.call_overhead or 0.0

    def seconds(stage: Stage) -> float | None:
        if stage.product is None:
            return None if profile.combine_rate is None else stage.bytes / profile.combine_rate + overhead
        count = max(1, round(stage.flops / (2 * math.prod(stage.product))))
        known = rates.seconds(stage.product, count, way)
        return None if known is None else known + overhead * (count if way is Way.LOOP else 1)

    return [replace(stage, seconds=seconds(stage)) for stage in stages]
