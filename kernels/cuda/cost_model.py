"""Predicted seconds on a GPU: products by measured rates and whole waves of tiles, sums by measured bandwidth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..identity import memoize_on_instance
from ..measured import measured
from ..planning.machine import Machine
from ..planning.profile import GemmRate, Profile
from ..request import Request
from .dtypes import itemsize
from .shape import LINE, SEGMENT

PRICES = measured("cuda")

UNALIGNED: Mapping[str, Mapping[int, float]] = PRICES.unaligned
"""Fraction of the rate that the vendor's products reach, by dtype and by the multiple in bytes of rows of B and A."""

START: float = PRICES.start
"""Latency in seconds of a tile, from its start to the first multiplication and from the last to the end."""

MULTIPROCESSORS = "multiprocessors"
"""The key of the number of multiprocessors in a profile's versions."""

ALIKE = 0.01
"""Squared distance of logarithmic sizes below which two measurements have equal weight."""

ALL_AT_ONCE = ("batched", "stack")
"""Modes in which all products of a stage are one launch, so that they share waves of tiles."""

Floats = npt.NDArray[np.float64]


def mode_of(method: str | None = None, count: int = 1) -> str:
    """Return the mode of a profile's rates: one product, or a stack of so many."""
    return "whole" if method is None else f"{method} {count}"


def wave_efficiency(dtype: str, m: Any, k: Any, n: Any, count: Any, units: int) -> Floats:
    """Return the fraction of a GPU's rate that `count` products of these sizes can use: whole waves of whole tiles.

    The vendor uses smaller tiles if large ones would leave multiprocessors idle, and splits
    the sum over k if there are too few of any; both cost some of the rate.
    """
    m, k, n, count = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (m, k, n, count)))
    best: Floats = np.zeros(m.shape)
    for rows, cols, share in PRICES.tiles[dtype]:
        tiles = np.ceil(m / rows) * np.ceil(n / cols) * count
        used = share * m * n * count / (tiles * rows * cols)
        best = np.maximum(best, used * tiles / (np.ceil(tiles / units) * units))
        parts = 2.0
        while True:
            split = (tiles < PRICES.split_below * units) & (k >= parts * PRICES.least_part)
            if not split.any():
                break
            some = PRICES.split_share * used * tiles * parts / (np.ceil(tiles * parts / units) * units)
            best = np.where(split, np.maximum(best, some), best)
            parts *= 2
    return best


def alignment_efficiency(dtype: str, k: Any, n: Any) -> Floats:
    """Return the fraction of the rate that a stack reaches whose rows are no whole memory transactions."""
    item = itemsize(dtype)
    k, n = np.broadcast_arrays(np.asarray(k, dtype=np.int64), np.asarray(n, dtype=np.int64))
    found: Floats = np.ones(k.shape)
    for axis, size in (("k", k), ("n", n)):
        common = np.gcd(size * item, LINE)
        for multiple, part in PRICES.loose.get(dtype, {}).get(axis, {}).items():
            found = np.where(common == multiple, found * part, found)
    return found


def row_multiple(dtype: str, k: Any, n: Any) -> npt.NDArray[np.int64]:
    """Return the bytes, at most SEGMENT, that rows of A (k) and of B and C (n) are multiples of."""
    item = itemsize(dtype)
    k, n = (np.asarray(x, dtype=np.int64) * item for x in (k, n))
    return np.gcd(np.gcd(k, n), SEGMENT)


def instant_reason(request: Request, seconds: float) -> str | None:
    """Return the reason why a request is left to the vendor's product, which takes so many seconds, or None."""
    dtype = request.arithmetic
    unaligned = dtype in UNALIGNED and row_multiple(dtype, request.k, request.n) != SEGMENT
    instant = PRICES.unaligned_instant if unaligned else PRICES.instant
    if seconds >= instant:
        return None
    return f"the vendor's product takes less than {1e6 * instant:.0f} us: launches alone would eat the gain"


def missing_rates(machine: Machine, *arithmetics: str) -> str | None:
    """Return the reason why nothing is predicted from a machine's rates of these arithmetics, or None."""
    if all(map(machine.costs.knows, arithmetics)):
        return None
    return f"the profile {machine.profile.id} has no rates of {' or '.join(arithmetics)} products or of sums"


@dataclass(frozen=True)
class CudaCostModel:
    """A `CostModel`. Modes: "whole", "batched" and "stack", as in `mode_of`.

    The rate of a product is interpolated from the measured ones, cubes and rectangles, weighted by proximity in
    log m, k, n and number, times its relative efficiency in whole waves of whole tiles and memory
    transactions. Every wave of tiles waits for its first operands, and part of the memory traffic
    is not hidden: short sizes are expensive. No product is faster than a copy of its operands.
    """

    profile: Profile

    @classmethod
    def of(cls, machine: Machine) -> CudaCostModel:
        """Return the cost model of a GPU."""
        assert isinstance(machine.costs, cls)
        return machine.costs

    def knows(self, dtype: str) -> bool:
        return self.profile.combine_rate is not None and (dtype, "whole") in self._rows

    @cached_property
    def units(self) -> int:
        """Number of multiprocessors."""
        return int(dict(self.profile.versions).get(MULTIPROCESSORS, 1))

    @cached_property
    def _rows(self) -> dict[tuple[str, str], list[tuple[GemmRate, int]]]:
        rows: dict[tuple[str, str], list[tuple[GemmRate, int]]] = {}
        for row in self.profile.gemm:
            kind, _, count = row.mode.partition(" ")
            rows.setdefault((row.dtype, kind), []).append((row, int(count or 1)))
        return rows

    def best_rate(self, dtype: str) -> float:
        """Return the best measured rate, in flops per second."""
        rates = (row.rate for row in self.profile.gemm if row.dtype == dtype)
        return max(rates, default=math.inf)

    def gemm(self, dtype: str, m: Any, k: Any, n: Any, count: Any = 1, mode: str = "whole") -> Any:
        """See `CostModel`; NaN if no such rate was measured. A call's overhead is the minimum time."""
        m, k, n, count = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (m, k, n, count)))
        if (dtype, mode) not in self._rows:
            return np.full(m.shape, np.nan)
        together = count if mode in ALL_AT_ONCE else np.ones(count.shape)
        places, speeds = self._table(dtype, mode)
        wanted = np.stack([np.log(np.maximum(x, 1)) for x in (m, k, n, together)], axis=-1)
        apart = wanted[..., None, :] - places
        weights = ((apart * apart).sum(axis=-1) + ALIKE) ** -1.5
        speed = np.exp(weights @ speeds / weights.sum(axis=-1)) * self.part(dtype, m, k, n, together, mode)
        seconds = 2 * m * k * n * together / speed + self.beside(dtype, m, k, n, together)
        seconds = np.maximum(seconds, self._moving(dtype, m, k, n, together))
        calls = np.ones(count.shape) if mode in ALL_AT_ONCE else count
        seconds = calls * seconds
        if mode == "whole":
            return seconds
        return np.maximum(seconds, self.overhead(calls))

    def tiled(
        self, m: Any, k: Any, n: Any, tile: tuple[int, int], over_half: float, bytes: Any, latency: float = START
    ) -> Any:
        """Seconds of a product in 8 bits that moves so many bytes, at this multiple of the best rate of bfloat16.

        Whole waves of tiles of C (rows, cols), each with `latency` seconds in which nothing is multiplied. NaN where
        no rate of bfloat16 was measured.
        """
        if not self.knows("bfloat16"):
            return np.nan * bytes
        waves = np.ceil(np.ceil(m / tile[0]) * np.ceil(n / tile[1]) / self.units)
        flops = 2.0 * waves * self.units * tile[0] * tile[1] * k
        computing = latency * waves + flops / (over_half * self.best_rate("bfloat16"))
        return np.maximum(np.maximum(computing, START + bytes / (self.profile.bandwidth or math.inf)), self.overhead(1))

    def combine(self, bytes: Any, flops: Any = 0) -> Any:
        """See `CostModel`: bound by memory."""
        rate = self.profile.combine_rate
        if rate is None:
            return np.nan * bytes
        return np.maximum(START + bytes / rate, self.overhead(1))

    def overhead(self, calls: Any, levels: Any = 0) -> Any:
        """See `CostModel`: the host's part of a launch, hidden if the device takes longer."""
        return (self.profile.call_overhead or 0.0) * calls

    def _moving(self, dtype: str, m: Any, k: Any, n: Any, count: Any) -> Any:
        each = itemsize(dtype) / (self.profile.bandwidth or math.inf)
        return count * (m * k + k * n + m * n) * each

    def beside(self, dtype: str, m: Any, k: Any, n: Any, count: Any) -> Any:
        """Return the seconds in which nothing is multiplied: waves of tiles start, and part of the moving."""
        rows, cols = PRICES.started
        starting = START * np.ceil(np.ceil(m / rows) * np.ceil(n / cols) * count / self.units)
        return starting + PRICES.exposed * self._moving(dtype, m, k, n, count)

    def part(self, dtype: str, m: Any, k: Any, n: Any, count: Any, mode: str) -> Any:
        """Return the part of the rate of full waves of tiles and whole transactions that products reach."""
        part = wave_efficiency(dtype, m, k, n, count, self.units)
        if dtype in UNALIGNED:
            common = row_multiple(dtype, k, n)
            for multiple, share in UNALIGNED[dtype].items():
                part = np.where(common == multiple, part * share, part)
        return part * alignment_efficiency(dtype, k, n) if mode in ALL_AT_ONCE else part

    @memoize_on_instance
    def _table(self, dtype: str, mode: str) -> tuple[Floats, Floats]:
        """Return logarithms of m, k, n and number, and of flops per second at full waves while multiplying."""
        rows = self._rows[dtype, mode]
        m, k, n, count = np.array([(row.m, row.k, row.n, number) for row, number in rows], dtype=float).T
        rate = np.array([row.rate for row, _ in rows])
        work = 2 * m * k * n * count
        seconds = work / rate
        seconds = seconds - np.minimum(self.beside(dtype, m, k, n, count), seconds / 2)
        places = np.log(np.stack([m, k, n, count], axis=-1))
        return places, np.log(work / seconds / self.part(dtype, m, k, n, count, mode))
