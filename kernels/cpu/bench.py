"""Timing of candidates on a processor: operands, checks, interleaved calls, and the load of other processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Matrix
from ..dtypes import dtype_of
from ..request import Layout, Request
from ..structure import is_factored

CHECKED = 96
"""Number of rows of C that are compared with a float64 reference."""

LEAST_SECONDS = 0.02
"""The rate of a pass is the best over at least this long, and at least two runs: disturbances only add time."""


class CpuBench:
    """A `planning.planner.Bench`."""

    def operands(self, request: Request, seed: int) -> tuple[Any, Matrix, Matrix]:
        """See `Bench.operands`: standard normal numbers, or small integers; for a factored A, random parameters."""
        rng = np.random.default_rng(seed)
        factored = request.structures[0]
        if is_factored(factored):
            b, c = (_drawn(rng, request.shapes[place], request, place) for place in (1, 2))
            return factored.draw(rng, request.dtype), b, c
        a, b, c = (_drawn(rng, shape, request, place) for place, shape in enumerate(request.shapes))
        return a, b, c

    def errors(self, request: Request, a: Any, b: Matrix) -> Callable[[Matrix], float]:
        """See `Bench.errors`; for a factored A, computed on some columns only."""
        if is_factored(factored := request.structures[0]):
            cols = np.linspace(0, request.n - 1, min(request.n, CHECKED)).astype(int)
            truth = factored.multiply_wide(a, b[:, cols])
            return lambda c: _relative(c[:, cols], truth)
        first = (0,) * len(request.batch)
        left, right = (_wide(x, request)[(0,) * (x.ndim - 2)] for x in (a, b))
        rows = np.linspace(0, request.m - 1, min(request.m, CHECKED)).astype(int)
        structure_a, structure_b, structure_c = request.structures
        truth = structure_a.naive(left)[rows] @ structure_b.naive(right)
        wanted = structure_c.naive(np.ones((request.m, request.n), bool))[rows]
        truth = np.where(wanted, truth, 0)
        return lambda c: _relative(_wide(c, request)[first][rows], truth)

    def interleaved(self, calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Sequence[float]]:
        """See `Bench.interleaved`: every call is preceded by a product with all threads of the library.

        After such a product the library's idle threads spin for a while, which slows calls by our own threads:
        without it, a call's time would depend on the call that happened to precede it.
        """
        return in_turns(calls, rounds, before=_by_library)


def best_seconds(call: Callable[[], object]) -> float:
    """Return the least seconds of a call, after an untimed one: see LEAST_SECONDS."""
    call()
    seconds: list[float] = []
    began = time.perf_counter()
    while len(seconds) < 2 or time.perf_counter() - began < LEAST_SECONDS:
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def in_turns(
    calls: Mapping[str, Callable[[], object]], rounds: int, before: Callable[[], object] = lambda: None
) -> dict[str, Sequence[float]]:
    """Measure the seconds of every call: one untimed and one timed run a round, each after `before`.

    Every round starts with a different call.
    """
    names = list(calls)
    samples: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 1):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            before()
            began = time.perf_counter()
            calls[name]()
            if number:
                samples[name].append(time.perf_counter() - began)
    return dict(samples)


def _by_library() -> None:
    """Run a product of about a millisecond: large enough to use all threads of the library."""
    square = np.ones((384, 384), np.float32)
    np.matmul(square, square)


def _relative(c: Matrix, truth: Matrix) -> float:
    return float(np.linalg.norm(c - truth) / (np.linalg.norm(truth) or 1.0))


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], request: Request, place: int) -> Matrix:
    columns = request.layouts[place] is Layout.COLUMNS
    size = (*shape[:-2], shape[-1], shape[-2]) if columns else shape
    kind = dtype_of(request.dtype)
    if request.exact:
        most = min(100, request.max_abs or 100)
        drawn = rng.integers(-most, most + 1, size).astype(request.result if place == 2 else request.storage)
    elif request.dtype == "bfloat16":
        drawn = (rng.standard_normal(size, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        drawn = rng.standard_normal(size).astype(request.storage)
        if kind.parts == 2:
            drawn = drawn + 1j * rng.standard_normal(size).astype(request.storage)
    matrix = drawn.swapaxes(-1, -2) if columns else drawn
    return np.ascontiguousarray(request.structures[place].naive(matrix)) if not columns and place < 2 else matrix


def _wide(matrix: Matrix, request: Request) -> Matrix:
    """Convert the matrix to float64 or complex128."""
    if request.dtype == "bfloat16":
        return (matrix.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return matrix.astype(np.complex128 if np.iscomplexobj(matrix) else np.float64)


BUSY_SHARE = 0.05
"""A measurement counts as disturbed if other processes used more than this share of the processors."""


class CpuLoadMonitor:
    """The load that other processes put on the processors since this was created."""

    def __init__(self) -> None:
        self._busy, self._began = _busy_seconds(), time.perf_counter()

    def share(self) -> float:
        """Return the share of all processors, 0 to 1, that other processes used; 0 if the system does not report it."""
        now, elapsed = _busy_seconds(), time.perf_counter() - self._began
        if self._busy is None or now is None or not elapsed:
            return 0.0
        # Both clocks tick in hundredths of a second: two ticks of every processor are within the error.
        processors = os.cpu_count() or 1
        used = now - self._busy - 2 * processors / os.sysconf("SC_CLK_TCK")
        return max(0.0, used / (elapsed * processors))


def _busy_seconds() -> float | None:
    """Return the processor seconds of processes other than this one and its children."""
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    own = os.times()
    mine = own.user + own.system + own.children_user + own.children_system
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - mine
