"""Measurement of this machine: rates of its GEMM libraries, of generated sums, and of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..kernels.arrays import torch
from ..kernels.cpu.bench import best_seconds
from ..kernels.cpu.blas import NUMPY, Backend, backends
from ..kernels.cpu.blas_threads import blas_libraries
from ..kernels.cpu.machine import caches, hardware, machine_id, versions
from ..kernels.cpu.mapping import leading_dimension
from ..kernels.cpu.partition import Partition
from ..kernels.cpu.threads import (
    blas_is_limited,
    parallel_rows,
    parallel_tasks,
    single_threaded_blas,
    thread_count,
)
from ..kernels.cpu.workspace import empty_aligned
from ..kernels.dtypes import dtype_of
from ..kernels.planning.profile import GemmRate, Profile
from ..schemes_db.flatten import flatten
from ..schemes_db.resolve import resolve
from ..schemes_db.straightline import program_of

CUBES = (96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072)
"""Square sizes whose rates are measured."""

RECTANGLES = ((512, 1024, 2752), (1024, 2048, 5504), (256, 1024, 1024), (128, 1024, 4096), (1024, 512, 2048))
"""Blocks of neural-network layer shapes: few rows, many columns."""

MATRICES_FLOPS, MATRICES_FLOPS_EXACT = 1e10, 3e8
"""Maximum operations of a pass over the cycled products; numpy's own loops for integers are a hundred times slower."""

TIMES_THE_CACHE, MATRICES_BYTES = 2, 1 << 29
"""Products are cycled until their matrices exceed the last cache by this factor, up to so many bytes.

The products of a scheme read their operands where the sums stored them: in memory. Measured, float32 256, two
cores: 226 Gflop/s from the caches, 209 from memory, 212 within a scheme on 4096; at 512 the three are the same.
"""

PASSES = 3
"""Passes over all sizes and libraries."""

ALIKE = 1.05
"""Ratio up to which the rates of two passes agree."""


def measure(
    dtypes: tuple[str, ...] = ("float32", "float64", "complex64", "complex128", "int32", "int64", "bfloat16"),
    say: Callable[[str], None] = lambda _: None,
) -> Profile:
    """Measure the profile of this machine with the current number of threads, in most of a minute.

    The libraries take turns at every size, and all of it is repeated in PASSES passes, of which the best rate counts:
    a slow phase of a shared machine falls on all contenders of a size, and on one pass only.
    """
    threads = thread_count()
    rates: dict[GemmRate, list[float]] = {}
    for number in range(PASSES):
        for dtype in dtypes:
            say(f"{dtype} products, pass {number + 1} of {PASSES}")
            for row in _pass(dtype, threads):
                rates.setdefault(replace(row, rate=0.0), []).append(row.rate)
    say("sums")
    combine = _sums(threads, 4096)
    say("memory")
    copy = _copy_rate(threads, 1 << 27)
    return Profile(
        machine_id(threads),
        f"{hardware()}, {threads} threads",
        versions(),
        tuple(replace(row, rate=max(found)) for row, found in rates.items()),
        combine,
        copy,
        caches(),
        source="measured",
        notes=_doubt(rates),
    )


def _doubt(rates: Mapping[GemmRate, Sequence[float]]) -> str:
    """Return a note on rates whose two best passes differ, or ""."""
    best = [sorted(found)[-2:] for found in rates.values() if len(found) > 1]
    apart = sum(second > ALIKE * first for first, second in best)
    return f"{apart} of {len(best)} rates differ between passes by more than {ALIKE - 1:.0%}" if apart else ""


def _pass(dtype: str, threads: int) -> Iterator[GemmRate]:
    """Measure the rates of all libraries at all sizes of a dtype once."""
    sizes = [(size, size, size) for size in CUBES]
    main = dtype in ("float32", "float64")
    if dtype_of(dtype).exact:
        sizes = [(96, 96, 96), (256, 256, 256)]  # numpy's own loops: a hundred times slower than a BLAS
    elif main:
        sizes += RECTANGLES
    else:
        sizes = [size for size in sizes if size[0] in (256, 512, 1024)]
    able = [backend for backend in backends() if backend.supports(dtype)]
    for size in sizes:
        for backend in able:
            yield from _rates(backend, dtype, size, threads, main and backend is NUMPY)


@contextmanager
def limited(threads: int, only: Backend | None = None) -> Iterator[None]:
    """The products of all libraries, or of one, on so many threads."""
    before = [(backend, _limit(backend, threads)) for backend in backends() if only in (None, backend)]
    try:
        yield
    finally:
        for backend, count in before:
            _limit(backend, count)


def _limit(backend: Backend, threads: int) -> int:
    """Set the number of threads of a library's products; return the previous number."""
    if backend is NUMPY:
        before = min((library.num_threads for library in blas_libraries()), default=1)
        for library in blas_libraries():
            library.set_num_threads(threads)
        return int(before)
    found = int(torch.get_num_threads())
    torch.set_num_threads(threads)
    return found


def _rates(backend: Backend, dtype: str, size: tuple[int, int, int], threads: int, tasks: bool) -> Iterator[GemmRate]:
    kind, (m, k, n) = dtype_of(dtype), size
    flops = 2.0 * kind.parts**2 * m * k * n
    count = _turns(kind.numpy.itemsize * (m * k + k * n + m * n), flops, kind.exact)
    shapes = ((count, m, k), (count, k, n), (count, m, n))
    a, b, out = (_numbers(shape, dtype) for shape in shapes)

    def one(i: int, _: int = 0) -> None:
        backend.multiply(a[i % count], b[i % count], out[i % count], dtype)

    with limited(threads, backend):
        seconds = best_seconds(partial(parallel_tasks, one, count, 1))
        yield GemmRate(dtype, m, k, n, flops * count / seconds, "whole", backend.name)
    if tasks and threads > 1 and blas_is_limited():
        many = -(-count // threads) * threads  # as many for each thread
        with single_threaded_blas():
            seconds = best_seconds(partial(parallel_tasks, one, many, threads))
        yield GemmRate(dtype, m, k, n, flops * many / seconds, "tasks", backend.name)


def _turns(nbytes: int, flops: float, exact: bool) -> int:
    """Return the number of distinct products to cycle through, given the bytes and operations of one."""
    wanted = min(TIMES_THE_CACHE * max(caches(), default=1 << 25), MATRICES_BYTES)
    most = int((MATRICES_FLOPS_EXACT if exact else MATRICES_FLOPS) / flops)
    return max(1, min(-(-wanted // nbytes), most))


def _numbers(shape: tuple[int, int, int], dtype: str) -> Any:
    """Return matrices (count, rows, columns) with the memory layout of those of a level."""
    kind, (count, rows, columns) = dtype_of(dtype), shape
    lead = leading_dimension(columns, kind.numpy.itemsize)
    made = empty_aligned((count, rows, lead), kind.numpy)[:, :, :columns]
    made[...] = 0x3F80 if dtype == "bfloat16" else 1
    return made


def _sums(threads: int, size: int) -> float:
    """Measure the bytes per second of two levels of Strassen's sums from memory: left sums, right sums and merge."""
    strassen = program_of(resolve("strassen")[0])
    cut = Partition(flatten(strassen, strassen), (size, size, size), "float32", (False, False, False))
    total, moved = 0.0, 0
    matrix = empty_aligned((size, size), np.dtype(np.float32))
    matrix[...] = 1
    spare = cut.spare(empty_aligned)
    for role, linear in enumerate((cut.maps.left, cut.maps.right, cut.maps.merge)):
        grid = cut.grids[role]
        stack = grid.stack(linear.sources if role == 2 else len(linear.results), empty_aligned)
        stack[...] = 1
        blocks = grid.locate(matrix), grid.in_stack(stack)
        source, target = blocks[::-1] if role == 2 else blocks
        bound = grid.bound(linear)
        total += best_seconds(partial(bound.run, source, target, spare, threads))
        moved += bound.traffic
    return moved / total


def _copy_rate(threads: int, nbytes: int) -> float:
    source, target = (empty_aligned((nbytes // 8,), np.dtype(np.float64)) for _ in range(2))
    source[...] = 1

    def part(first: int, last: int) -> None:
        target[first:last] = source[first:last]

    return 2 * nbytes / best_seconds(lambda: parallel_rows(part, len(source), threads))
