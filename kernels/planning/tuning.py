"""Measured times of triangular products, kept under LCMA_HOME: what was measured need not be predicted."""

from __future__ import annotations

import contextlib
import json
import math
import statistics
import time
from functools import lru_cache
from pathlib import Path

import numpy as np

from ...errors import PlanError
from ...home import write_atomic
from ...schemes_db.symmetry import Triangle
from ..cpu.machine import machine_id, profiles_folder
from ..request import Layout, Request

NEAR = math.log(1.25)
"""Sizes that differ by less than this factor, each, are taken for the same."""

MOST_ENTRIES = 4096
"""A file with more is not read: nobody measured so much."""


def _path() -> Path:
    from ..cpu.threads import thread_count

    return profiles_folder() / f"causal-{machine_id(thread_count())}.json"


@lru_cache(maxsize=8)
def _kept(path: Path, stamp: float) -> tuple[tuple[str, tuple[int, int, int], dict[str, float]], ...]:
    """(class, sizes, seconds by way) of every entry; a file that is damaged counts as none."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(entries, list) or len(entries) > MOST_ENTRIES:
            return ()
        return tuple(
            (
                str(entry["class"]),
                (int(entry["sizes"][0]), int(entry["sizes"][1]), int(entry["sizes"][2])),
                {str(way): float(seconds) for way, seconds in entry["seconds"].items()},
            )
            for entry in entries
        )
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return ()


def _entries() -> tuple[tuple[str, tuple[int, int, int], dict[str, float]], ...]:
    path = _path()
    with contextlib.suppress(OSError):
        return _kept(path, path.stat().st_mtime)
    return ()


def _class(request: Request, triangle: Triangle) -> str:
    layouts = "".join("c" if layout is Layout.COLUMNS else "r" for layout in request.layouts)
    return f"{triangle} {request.dtype} {layouts}"


def remembered(request: Request, triangle: Triangle) -> dict[str, float]:
    """Seconds by way of the measured product nearest to this one, or nothing."""
    if 0 in request.shape:
        return {}

    def distance(sizes: tuple[int, int, int]) -> float:
        return max(abs(math.log(x / y)) for x, y in zip(sizes, request.shape, strict=True))

    near = [
        (distance(sizes), seconds)
        for kind, sizes, seconds in _entries()
        if kind == _class(request, triangle) and min(sizes) > 0 and distance(sizes) < NEAR
    ]
    return min(near, key=lambda pair: pair[0])[1] if near else {}


def tune(request: Request, triangle: Triangle, rounds: int = 3, seed: int = 0) -> dict[str, float]:
    """Measure every way on random matrices, keep the medians for `choose`, and give them: seconds by way.

    Raises:
        PlanError: the request has a batch or nothing in it, or cannot be run at all.
        OSError: the medians cannot be written.
    """
    from ..causal.choose import candidates, forget_plans, planned

    if request.batch or 0 in request.shape:
        raise PlanError("measure one product of matrices that are not empty, without a batch")
    rng = np.random.default_rng(seed)
    m, k, n = request.shape
    a, b, out = (
        _drawn(rng, size, request.dtype, layout)
        for size, layout in zip(((m, k), (k, n), (m, n)), request.layouts, strict=True)
    )
    if triangle.side != "out":  # what lies outside the triangle costs time where it must be cut away
        part = np.triu if triangle.upper else np.tril
        operand = a if triangle.side == "left" else b
        operand[...] = part(operand)
    runs = {}
    for candidate in candidates(request, triangle):
        with contextlib.suppress(PlanError):
            runs[candidate.label] = planned(request, triangle, candidate.label)[1]
    times: dict[str, list[float]] = {label: [] for label in runs}
    for turn in range(rounds + 1):
        for label, executor in runs.items():
            start = time.perf_counter()
            executor.run(a, b, out)
            if turn:
                times[label].append(time.perf_counter() - start)
    medians = {label: statistics.median(seconds) for label, seconds in times.items()}
    _keep(_class(request, triangle), request.shape, medians)
    forget_plans()
    return medians


def _drawn(rng: np.random.Generator, size: tuple[int, int], dtype: str, layout: Layout) -> np.ndarray:
    shape = size[::-1] if layout is Layout.COLUMNS else size
    drawn = rng.standard_normal(shape).astype(dtype)
    return drawn.T if layout is Layout.COLUMNS else drawn


def _keep(kind: str, sizes: tuple[int, int, int], seconds: dict[str, float]) -> None:
    others = [entry for entry in _entries() if entry[:2] != (kind, sizes)]
    entries = [*others, (kind, sizes, seconds)][-MOST_ENTRIES:]
    text = json.dumps([{"class": k, "sizes": list(s), "seconds": t} for k, s, t in entries], indent=1)
    write_atomic(_path(), text)
    _kept.cache_clear()
