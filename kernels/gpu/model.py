"""Predicted seconds on a GPU: products by measured rates and whole waves of tiles, sums by measured bandwidth."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

from ..profile import GemmRate, Profile
from ..strategy import Stage
from .three_stage import Way

TILE = (128, 256)
"""Rows and columns of C that the vendor's large kernels give one multiprocessor."""

MULTIPROCESSORS = "multiprocessors"
"""Where a profile's versions say how many there are."""

Sizes = tuple[int, int, int]


def mode_of(way: Way | None = None, count: int = 1) -> str:
    """The mode under which a profile keeps rates: one product, so many batched ones, or a loop with B~ transposed."""
    if way is None:
        return "whole"
    return str(way) if way is Way.LOOP else f"{way} {count}"


def filled(m: int, n: int, count: int, units: int) -> float:
    """The part of the work of whole waves of tiles that `count` products with m x n results use."""
    down, across = -(-m // TILE[0]), -(-n // TILE[1])
    waves = -(-down * across * count // units)
    return m * n * count / (waves * units * TILE[0] * TILE[1])


class Rates:
    """What a profile knows of the products of one dtype.

    The measured rate is that of the neighbouring cubes, by the logarithm of the size, times how
    much better or worse a shape fills whole waves of whole tiles than the cubes do.
    """

    def __init__(self, profile: Profile, dtype: str) -> None:
        self.units = int(dict(profile.versions).get(MULTIPROCESSORS, 1))
        self._modes: dict[str, list[GemmRate]] = {}
        for row in profile.gemm:
            if row.dtype == dtype:
                self._modes.setdefault(row.mode, []).append(row)
        self._counts = sorted(int(mode.split()[1]) for mode in self._modes if mode.startswith(f"{Way.BATCHED} "))
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
        speed = _between(curve, (m * k * n) ** (1 / 3))
        return 2 * m * k * n * count / (speed * filled(m, n, count if way is Way.BATCHED else 1, self.units))

    def _curve(self, way: Way | None, count: int) -> list[tuple[float, float]]:
        """Sizes and flops per second at full waves, smallest size first."""
        modes = {mode_of(way): 1}
        if way is Way.BATCHED:
            nearest = min(self._counts, key=lambda known: abs(math.log(known / count)), default=0)
            # The batch nearest in number, and a smaller one's figures at sizes that it was not measured at.
            modes = {mode_of(way, known): known for known in self._counts if known <= nearest}
        key = " ".join(modes)
        if key not in self._curves:
            speeds: dict[float, float] = {}
            for mode, batch in modes.items():
                for row in self._modes.get(mode, ()):
                    size = (row.m * row.k * row.n) ** (1 / 3)
                    speeds[size] = row.rate / filled(row.m, row.n, batch, self.units)
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
