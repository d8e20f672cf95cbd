"""Predicted seconds on a GPU: products by measured rates and whole waves of tiles, sums by measured bandwidth."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..planning.profile import GemmRate, Profile
from ..planning.strategy import Stage
from .dtypes import itemsize
from .level import Method

_HALF = {(128, 256): 1.0, (128, 128): 0.95, (64, 128): 0.85, (64, 64): 0.7}

TILES: dict[str, dict[tuple[int, int], float]] = {
    "bfloat16": _HALF,
    "float16": _HALF,
    "tf32": {(256, 192): 1.0, (256, 128): 1.0, (128, 192): 0.95, (128, 128): 0.9, (64, 64): 0.7},
    "float32": {(128, 128): 1.0, (64, 128): 0.97, (64, 64): 0.9},
    "float64": {(64, 64): 1.0},
}
"""By dtype: rows and columns of C that the vendor's kernels give one multiprocessor, and the part of the best rate they
reach. Sums of doubles take twice the registers, and there is nothing like the tensor cores' hunger for large tiles."""

SPLIT_BELOW, LEAST_PART, SPLIT_SHARE = 4, 512, 0.97
"""The sum over k is split below so many waves of tiles, into parts of at least so much, at so much of the rate."""

LINE = 128
"""Bytes that memory is read in."""

_HALF_LOOSE = {"k": {16: 0.92}, "n": {16: 0.9}}

LOOSE: dict[str, dict[str, dict[int, float]]] = {
    "bfloat16": _HALF_LOOSE,
    "float16": _HALF_LOOSE,
    "tf32": {"k": {16: 0.7, 32: 0.88}},
    "float64": {"k": {16: 0.96}, "n": {16: 0.95}},
}
"""By dtype, for rows of A~ (k) and B~ (n) in a stack that are multiples of so many bytes and no more: the part of the
rate that is left. Medians of some hundred plans on an H200; strict float32 loses nothing."""

MULTIPROCESSORS = "multiprocessors"
"""Where a profile's versions say how many there are."""

START, STARTED = 2e-6, (128, 256)
"""Seconds from the start of so large a tile to its first multiplication, and from the last to the end: latencies of
memory. Smaller tiles wait less or share a multiprocessor, with the same effect."""

EXPOSED = 0.3
"""The part of the seconds of a copy of operands and results that multiplying does not hide: between 0.2 and 0.5
choices are hardly other ones."""

ALIKE = 0.01
"""The squared distance of sizes, by their logarithms, below which one measurement is as good as the other."""

Sizes = tuple[int, int, int]
Floats = npt.NDArray[np.float64]


def mode_of(way: Method | None = None, count: int = 1) -> str:
    """The mode under which a profile keeps rates: one product, so many in a stack, or a loop with B~ transposed."""
    if way is None:
        return "whole"
    return str(way) if way is Method.LOOP else f"{way} {count}"


@lru_cache(maxsize=4096)
def filled(dtype: str, sizes: Sizes, count: int, units: int) -> float:
    """The part of a GPU's rate that `count` products of these sizes can use: whole waves of whole tiles.

    The vendor takes smaller tiles where large ones leave multiprocessors without work, and splits
    the sum over k where there are too few of any; both cost some of the rate.
    """
    m, k, n = sizes
    best = 0.0
    for (rows, cols), share in TILES[dtype].items():
        tiles = -(-m // rows) * -(-n // cols) * count
        used = share * m * n * count / (tiles * rows * cols)
        best = max(best, used * tiles / (-(-tiles // units) * units))
        parts = 2
        while tiles < SPLIT_BELOW * units and k >= parts * LEAST_PART:
            best = max(best, SPLIT_SHARE * used * tiles * parts / (-(-tiles * parts // units) * units))
            parts *= 2
    return best


def aligned(dtype: str, k: int, n: int) -> float:
    """The part of the rate that a stack reaches whose rows are no whole lines of memory."""
    known, item = LOOSE.get(dtype, {}), itemsize(dtype)
    parts = (known.get(axis, {}).get(math.gcd(size * item, LINE), 1.0) for axis, size in (("k", k), ("n", n)))
    return math.prod(parts)


def waiting(m: int, n: int, count: int, units: int) -> float:
    """Seconds in which waves of tiles wait for their first operands, where `count` products begin together."""
    rows, cols = STARTED
    return START * -(-(-(-m // rows) * -(-n // cols) * count) // units)


class Rates:
    """What a profile knows of the products of one dtype.

    The rate of a product is that of the measured ones, cubes and rectangles, weighted by nearness in
    log m, k, n and number, times how much better or worse it fills whole waves of whole tiles, and
    lines of memory. On top comes what every wave of tiles waits for its first operands, and what of
    the memory's work shows: short sizes are dear. Nothing is faster than a copy of its operands.
    """

    def __init__(self, profile: Profile, dtype: str) -> None:
        self.units = int(dict(profile.versions).get(MULTIPROCESSORS, 1))
        self._dtype, self._each = dtype, itemsize(dtype) / (profile.bandwidth or math.inf)
        self._rows: dict[str, list[tuple[GemmRate, int]]] = {}
        for row in profile.gemm:
            if row.dtype == dtype:
                kind, _, count = row.mode.partition(" ")
                self._rows.setdefault(kind, []).append((row, int(count or 1)))
        self._tables: dict[str, tuple[Floats, Floats]] = {}

    @property
    def best(self) -> float:
        """The best rate that was measured, flops per second."""
        return max((row.rate for rows in self._rows.values() for row, _ in rows), default=math.inf)

    def seconds(self, sizes: Sizes, count: int = 1, way: Method | None = None) -> float | None:
        """Seconds of `count` products of one size; None where no such rate was measured."""
        kind = mode_of(way).split()[0]
        if kind not in self._rows:
            return None
        if kind not in self._tables:
            self._tables[kind] = self._table(self._rows[kind], way)
        m, k, n = sizes
        at_once = count if way in (Method.BATCHED, Method.STACK) else 1
        places, speeds = self._tables[kind]
        apart: Any = places - np.log([max(size, 1) for size in (m, k, n, at_once)])
        weights = ((apart * apart).sum(axis=1) + ALIKE) ** -1.5
        speed = math.exp(float(speeds @ weights / weights.sum())) * self._part(sizes, at_once, way)
        seconds = 2 * m * k * n * at_once / speed + self._beside(sizes, at_once)
        return count // at_once * max(seconds, self._moving(sizes, at_once))

    def _moving(self, sizes: Sizes, count: int) -> float:
        m, k, n = sizes
        return count * (m * k + k * n + m * n) * self._each

    def _beside(self, sizes: Sizes, count: int) -> float:
        """Seconds in which nothing is multiplied."""
        return waiting(sizes[0], sizes[2], count, self.units) + EXPOSED * self._moving(sizes, count)

    def _part(self, sizes: Sizes, count: int, way: Method | None) -> float:
        part = filled(self._dtype, sizes, count, self.units)
        return part * aligned(self._dtype, *sizes[1:]) if way in (Method.BATCHED, Method.STACK) else part

    def _table(self, rows: list[tuple[GemmRate, int]], way: Method | None) -> tuple[Floats, Floats]:
        """Logarithms of m, k, n and number, and of flops per second at full waves while multiplying."""
        places, speeds = [], []
        for row, count in rows:
            sizes = row.m, row.k, row.n
            work = 2 * math.prod(sizes) * count
            taken = work / row.rate
            taken -= min(self._beside(sizes, count), taken / 2)
            places.append((*sizes, count))
            speeds.append(work / taken / self._part(sizes, count, way))
        return np.log(np.array(places, dtype=float)), np.log(np.array(speeds))


def timed(stages: list[Stage], dtype: str, way: Method | None, profile: Profile) -> list[Stage]:
    """The stages with their seconds, where the profile knows them.

    A call costs the host its overhead while the GPU is at work: it counts where the work is shorter.
    """
    rates, overhead = Rates(profile, dtype), profile.call_overhead or 0.0

    def seconds(stage: Stage) -> float | None:
        if stage.product is None:
            known = None if profile.combine_rate is None else START + stage.bytes / profile.combine_rate
            return None if known is None else max(known, overhead)
        count = max(1, round(stage.flops / (2 * math.prod(stage.product))))
        known = rates.seconds(stage.product, count, way)
        return None if known is None else max(known, overhead * (count if way is Method.LOOP else 1))

    return [replace(stage, seconds=seconds(stage)) for stage in stages]
