"""Measurement of this machine: rates of its GEMM libraries, of generated sums, and of memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...schemes_db.resolve import resolve
from ...schemes_db.straightline import program_of
from ..codegen.flatten import flatten
from ..dtypes import dtype_of
from ..planning.profile import GemmRate, Profile
from .blas import NUMPY, Backend, backends
from .blocks import leading_dimension, stack_blocks
from .hardware import hardware, machine_id, versions
from .mapping import BoundMap
from .partition import Partition, spare_rows
from .threads import blas_is_limited, parallel_rows, parallel_tasks, single_threaded_blas, thread_count
from .workspace import empty_aligned

CUBES = (96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072)
"""Square sizes whose rates are measured."""

RECTANGLES = ((512, 1024, 2752), (1024, 2048, 5504), (256, 1024, 1024), (128, 1024, 4096), (1024, 512, 2048))
"""Blocks of neural-network layer shapes: few rows, many columns."""

QUICK = (128, 256, 512, 1024)
"""The cubes of a first estimate, which takes one to two seconds a dtype."""

MATRICES_FLOPS, MATRICES_FLOPS_EXACT = 2e10, 3e8
"""Maximum operations of a pass over the cycled products; numpy's own loops for integers are a hundred times slower."""

TIMES_THE_CACHE, MATRICES_BYTES = 2, 1 << 29
"""Products are cycled until their matrices exceed the last cache by this factor, up to so many bytes.

The products of a scheme read their operands where the sums stored them: in memory. Measured, float32 256, two
cores: 226 Gflop/s from the caches, 209 from memory, 212 within a scheme on 4096; at 512 the three are the same.
"""

QUICK_FLOPS, QUICK_BYTES = 6e9, 1 << 27
"""The same limits for a first estimate."""

LEAST_SECONDS = 0.06
"""A rate is the best over at least this long, and at least two runs: disturbances only add time."""


def measure(
    dtypes: tuple[str, ...] = ("float32", "float64", "complex64", "complex128", "int32", "int64", "bfloat16"),
    quick: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Profile:
    """Measure the profile of this machine with the current number of threads.

    Without `quick` it takes most of a minute, and should run on an idle machine.
    """
    threads = thread_count()
    rows: list[GemmRate] = []
    for dtype in dtypes:
        sizes = [(size, size, size) for size in (QUICK if quick else CUBES)]
        main = dtype in ("float32", "float64")
        if dtype_of(dtype).exact:
            sizes = [(96, 96, 96), (256, 256, 256)]  # numpy's own loops: a hundred times slower than a BLAS
        elif not main:
            sizes = [size for size in sizes if size[0] in (256, 512, 1024)]
        elif not quick:
            sizes += RECTANGLES
        # A first estimate does not import a library only to measure it.
        installed = [backend for backend in backends() if not quick or backend.loaded or not NUMPY.supports(dtype)]
        for backend in installed:
            if backend.supports(dtype):
                say(f"{dtype} products by {backend.name}")
                rows += _rates(backend, dtype, sizes, threads, main and backend is NUMPY, quick)
    say("sums")
    combine = _sums(threads, 2048 if quick else 4096)
    say("memory")
    copy = _copy_rate(threads, 1 << (25 if quick else 27))
    return Profile(
        machine_id(threads),
        f"{hardware()}, {threads} threads",
        versions(),
        tuple(rows),
        combine,
        copy,
        _caches(),
        _call_overhead(),
        "measured",
        None,  # these sums are bound by memory, not by additions
        "a first estimate; lcma doctor --profile measures more" if quick else "",
    )


def _best(call: Callable[[], object], least: float = LEAST_SECONDS) -> float:
    call()
    seconds: list[float] = []
    began = time.perf_counter()
    while len(seconds) < 2 or time.perf_counter() - began < least:
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


@contextmanager
def _allowed(backend: Backend, threads: int) -> Iterator[None]:
    before = backend.limit(threads)
    try:
        yield
    finally:
        backend.limit(before)


def _rates(
    backend: Backend, dtype: str, sizes: list[tuple[int, int, int]], threads: int, tasks: bool, quick: bool
) -> Iterator[GemmRate]:
    kind = dtype_of(dtype)
    for m, k, n in sizes:
        flops = 2.0 * kind.parts**2 * m * k * n
        count = _turns(kind.numpy.itemsize * (m * k + k * n + m * n), flops, kind.exact, quick)
        shapes = ((count, m, k), (count, k, n), (count, m, n))
        a, b, out = (_numbers(shape, dtype) for shape in shapes)

        def one(i: int, _: int = 0, a: Any = a, b: Any = b, out: Any = out, count: int = count) -> None:
            backend.multiply(a[i % count], b[i % count], out[i % count], dtype)

        with _allowed(backend, threads):
            seconds = _best(partial(parallel_tasks, one, count, 1))
            yield GemmRate(dtype, m, k, n, flops * count / seconds, "whole", backend.name)
        if tasks and threads > 1 and blas_is_limited():
            many = -(-count // threads) * threads  # as many for each thread
            with single_threaded_blas():
                seconds = _best(partial(parallel_tasks, one, many, threads))
            yield GemmRate(dtype, m, k, n, flops * many / seconds, "tasks", backend.name)


def _turns(nbytes: int, flops: float, exact: bool, quick: bool) -> int:
    """Return the number of distinct products to cycle through, given the bytes and operations of one."""
    limit_bytes, limit_flops = (QUICK_BYTES, QUICK_FLOPS) if quick else (MATRICES_BYTES, MATRICES_FLOPS)
    wanted = min(TIMES_THE_CACHE * max(_caches(), default=1 << 25), limit_bytes)
    most = int((MATRICES_FLOPS_EXACT if exact else limit_flops) / flops)
    return max(1, min(-(-wanted // nbytes), most))


def _numbers(shape: tuple[int, int, int], dtype: str) -> Any:
    """Return matrices (count, rows, columns) with the memory layout of those of a level."""
    kind, (count, rows, columns) = dtype_of(dtype), shape
    lead = leading_dimension(columns, kind.numpy.itemsize)
    made = empty_aligned((count, rows, lead), kind.numpy)[:, :, :columns]
    made[...] = 0x3F80 if dtype == "bfloat16" else 1
    return made


def _sums(threads: int, size: int) -> float:
    """Measure the bytes per second of two levels of Strassen's sums from memory."""
    strassen = program_of(resolve("strassen")[0])
    program = flatten(strassen, strassen)
    seconds, moved = _apply(program, size, threads)
    return moved / seconds


def _apply(program: Any, size: int, threads: int) -> tuple[float, int]:
    """Return the seconds and bytes of the left sums, right sums and merge of one product."""
    cut = Partition(program, (size, size, size), "float32", (False, False, False))
    total, moved = 0.0, 0
    matrix = empty_aligned((size, size), np.dtype(np.float32))
    matrix[...] = 1
    rows = [empty_aligned((cut.spare_width,), np.dtype(np.float32)) for _ in range(2)]
    for role, linear in enumerate((cut.maps.left, cut.maps.right, cut.maps.merge)):
        grid = cut.grids[role]
        many = linear.sources if role == 2 else len(linear.results)
        stack = empty_aligned(cut.stack_shape(role, many), np.dtype(np.float32))
        stack[...] = 1
        blocks = grid.locate(matrix, cut.tables[role]), stack_blocks(stack, grid.width)
        source, target = blocks[::-1] if role == 2 else blocks
        bound = BoundMap.of(linear, range(len(linear.results)), "float32", grid.height, grid.width)
        places = {i: i for i in range(len(linear.results))}
        spare = spare_rows(cut, rows)
        total += _best(partial(bound.run, source, target, places, spare, threads))
        moved += bound.traffic
    return total, moved


def _copy_rate(threads: int, nbytes: int) -> float:
    source, target = (empty_aligned((nbytes // 8,), np.dtype(np.float64)) for _ in range(2))
    source[...] = 1

    def part(first: int, last: int) -> None:
        target[first:last] = source[first:last]

    return 2 * nbytes / _best(lambda: parallel_rows(part, len(source), threads))


def _caches() -> tuple[int, ...]:
    """Return the sizes in bytes of the first processor's data caches, nearest first."""
    sizes = []
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind, size = (folder / "type").read_text().strip(), (folder / "size").read_text().strip()
        except OSError:
            continue
        if kind != "Instruction" and size.endswith("K"):
            sizes.append(int(size[:-1]) << 10)
    return tuple(sizes)


def _call_overhead() -> float:
    """Measure the seconds to submit an empty task to another thread and get its result."""
    with ThreadPoolExecutor(1) as pool:
        return _best(lambda: pool.submit(int).result())
