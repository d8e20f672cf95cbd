"""Measurement of a GPU's profile: rates of the vendor's products, bandwidth of copies and of generated sums.

Products are cubes, and the sizes of language models' layers and their schemes. Single products besides the cubes have
short and long k: layers are no powers of two, and the vendor's kernels for them are different. Batched products are
those of one to three levels of schemes on layers; those of our own kernel are in whole tiles.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..kernels.arrays import torch
from ..kernels.cuda.clock import seconds_of
from ..kernels.cuda.cost_model import MULTIPROCESSORS, mode_of
from ..kernels.cuda.dtypes import itemsize, vendor_precision
from ..kernels.cuda.level import CudaLevel, CudaMethod
from ..kernels.cuda.machine import device_id, require_device, versions
from ..kernels.cuda.stack import DTYPES as STACKED
from ..kernels.cuda.stack import missing_accelerator, multiply_stack
from ..kernels.planning.profile import GemmRate, Profile
from ..schemes_db.flatten import flatten
from ..schemes_db.shipped import shipped
from ..schemes_db.straightline import program_of
from .bench.table import rows
from .products import Sizes

DTYPES = ("bfloat16", "float16", "tf32", "float32", "float64")
"""The measured dtypes, in order."""


@dataclass(frozen=True)
class Point:
    """One rate to measure: `count` products of one size by one method (None: a single product)."""

    sizes: Sizes
    method: CudaMethod | None
    count: int
    dtype: str

    @property
    def bytes(self) -> int:
        """Bytes of the operands and results."""
        m, k, n = self.sizes
        return self.count * (m * k + k * n + m * n) * itemsize(self.dtype)


def points(dtype: str) -> Iterator[Point]:
    """Yield the measured points of a dtype: whole products, and those of one to three levels."""
    for one in rows("gpu_points"):
        method = None if one.method is None else CudaMethod(one.method)
        if method is not CudaMethod.STACK or dtype in STACKED:
            yield Point(one.sizes, method, one.count, dtype)


COPIED = 1 << 30
"""Bytes of the array that is copied to measure the bandwidth."""

SUMMED = 8192
"""Size of the float32 matrix whose sums and merges are timed for the combine rate."""


VISITS, SPENT = 2, 0.06
"""Measurements of each point, in order and in reverse, and seconds of each: the preceding point heats the GPU."""


def measure(index: int = 0, say: Callable[[str], None] = lambda _: None) -> Profile:
    """Measure the profile of GPU number `index`; takes a minute or more. The vendor's settings are restored.

    Raises:
        PlanError: there is no such GPU, or no Triton.
    """
    require_device(index)
    properties = torch.cuda.get_device_properties(index)
    with torch.cuda.device(index):
        say("bandwidth")
        bandwidth = _copy_rate()
        combine, overhead = _combine_rate()
        rates = tuple(_rates(properties.total_memory // 3, say))
    return Profile(
        id=device_id(index),
        hardware=properties.name,
        versions=(*versions(), (MULTIPROCESSORS, str(properties.multi_processor_count))),
        gemm=rates,
        combine_rate=combine,
        bandwidth=bandwidth,
        caches=(int(properties.L2_cache_size),),
        call_overhead=overhead,
        source="measured",
    )


def settled(call: Callable[[], object], spent: float = 0.3) -> float:
    """Return the seconds of a call in the steady state: warm up for half of `spent`, then the median over the rest.

    An idle GPU runs faster than its power limit permits for about a tenth of a second.
    """
    seconds_of(call)
    once = seconds_of(call)
    repeats = max(1, round(spent / 10 / max(once, 1e-7)))
    rounds = max(1, min(5, round(spent / 2 / max(once, 1e-7))))
    seconds_of(call, rounds * repeats)
    return statistics.median(seconds_of(call, repeats) for _ in range(rounds))


def _copy_rate() -> float:
    source = torch.randn(COPIED // 4, device="cuda")
    target = torch.empty_like(source)
    return 2 * COPIED / settled(lambda: target.copy_(source))


def _combine_rate() -> tuple[float, float]:
    """Measure the bytes per second of two levels of Strassen, split and merge, and the seconds added by a launch."""
    one = program_of(shipped("strassen").scheme)
    core = CudaLevel(flatten(one, one), CudaMethod.BATCHED)

    def rate(size: int) -> tuple[float, float]:
        matrix = torch.randn(1, size, size, device="cuda")
        stack = torch.empty(1, core.rank, size // 4, size // 4, device="cuda")
        seconds = settled(lambda: core.left.run(matrix, stack)) + settled(lambda: core.merge.run(matrix, stack))
        return 2 * 4 * (matrix.numel() + stack.numel()) / seconds, seconds

    fast, _ = rate(SUMMED)
    return fast, rate(64)[1] / 2


def _rates(memory: int, say: Callable[[str], None]) -> Iterator[GemmRate]:
    fits = missing_accelerator(torch.device("cuda")) is None
    for dtype in DTYPES:
        known = [p for p in points(dtype) if p.bytes <= memory and (fits or p.method is not CudaMethod.STACK)]
        seconds: dict[Point, list[float]] = {point: [] for point in known}
        for visit in range(VISITS):
            for point in known if visit % 2 == 0 else reversed(known):
                say(f"{dtype} {mode_of(point.method, point.count)} {'x'.join(map(str, point.sizes))}")
                with vendor_precision(dtype):
                    seconds[point].append(settled(_products(point), SPENT))
        yield from (rate_of(point, statistics.median(samples)) for point, samples in seconds.items())


def rate_of(point: Point, seconds: float) -> GemmRate:
    """Return the rate of a point in the format of profiles."""
    work = 2 * point.count * math.prod(point.sizes)
    return GemmRate(point.dtype, *point.sizes, work / seconds, mode_of(point.method, point.count), "cublas")


def _products(point: Point) -> Callable[[], Any]:
    dtype = torch.float32 if point.dtype == "tf32" else getattr(torch, point.dtype)
    m, k, n = point.sizes
    # Full-range random numbers: zeros or small integers would draw less power and run faster.
    a = torch.randn((point.count, m, k), device="cuda", dtype=dtype)
    b = torch.randn((point.count, k, n), device="cuda", dtype=dtype)
    out = torch.empty((point.count, m, n), device="cuda", dtype=dtype)
    if point.method is CudaMethod.BATCHED:
        return lambda: torch.bmm(a, b, out=out)
    if point.method is CudaMethod.STACK:
        return lambda: multiply_stack(a, b, out)
    return lambda: torch.mm(a[0], b[0], out=out[0])
