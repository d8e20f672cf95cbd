"""The profile of a GPU, measured: rates of the vendor's products, bandwidth of copies and of generated sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...schemes_db.shipped import shipped
from ...schemes_db.straightline import program_of
from ..codegen.flatten import flatten
from ..profile import GemmRate, Profile
from .clock import settled
from .dtypes import itemsize
from .machine import device_id, require_device, versions
from .model import MULTIPROCESSORS, mode_of
from .stack import DTYPES as STACKED
from .stack import device_fits, multiply_stack
from .three_stage import ThreeStage, Way

COPIED = 1 << 30
"""Bytes of the array whose copy gives the bandwidth."""

SUMMED = 8192
"""Size of the float32 matrix whose sums and merges give the combine rate."""


@dataclass(frozen=True)
class Point:
    """One rate to be measured: `count` products of a cube, in one of the ways (None: a single product)."""

    dtype: str
    size: int
    way: Way | None
    count: int


def points() -> Iterator[Point]:
    """What is measured: the sizes of whole products, and of the products that one to three levels leave of them."""
    for dtype in ("bfloat16", "float16", "tf32", "float32", "float64"):
        for size in (1024, 2048, 4096, 8192, 16384):
            yield Point(dtype, size, None, 1)
        for count, sizes in (
            (7, (512, 1024, 2048, 4096, 8192)),
            (49, (512, 1024, 2048, 4096)),
            (343, (256, 512, 1024, 2048)),
        ):
            for size in sizes:
                yield Point(dtype, size, Way.BATCHED, count)
        if dtype in STACKED:
            for count, size in ((7, 2048), (7, 4096), (7, 8192), (49, 1024), (49, 2048), (49, 4096)):
                yield Point(dtype, size, Way.STACK, count)
        if dtype == "tf32":
            for size in (1024, 2048, 4096):
                yield Point(dtype, size, Way.LOOP, 7)


def measure(index: int = 0, say: Callable[[str], None] = lambda _: None) -> Profile:
    """The profile of GPU number `index`; takes about a minute. The vendor's settings are left as they were.

    Raises:
        PlanError: there is no such GPU, or no Triton.
    """
    import torch

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


def _copy_rate() -> float:
    import torch

    source = torch.randn(COPIED // 4, device="cuda")
    target = torch.empty_like(source)
    return 2 * COPIED / settled(lambda: target.copy_(source))


def _combine_rate() -> tuple[float, float]:
    """Bytes per second of two levels of Strassen, split and merge; seconds that a launch adds."""
    import torch

    one = program_of(shipped("strassen").scheme)
    core = ThreeStage(flatten(one, one), Way.BATCHED)

    def rate(size: int) -> tuple[float, float]:
        matrix = torch.randn(1, size, size, device="cuda")
        stack = torch.empty(1, core.slabs[0], size // 4, size // 4, device="cuda")
        seconds = settled(lambda: core.left.run(matrix, stack)) + settled(lambda: core.merge.run(matrix, stack))
        return 2 * 4 * (matrix.numel() + stack.numel()) / seconds, seconds

    fast, _ = rate(SUMMED)
    return fast, rate(64)[1] / 2


def _rates(memory: int, say: Callable[[str], None]) -> Iterator[GemmRate]:
    import torch

    before = torch.backends.cuda.matmul.allow_tf32
    try:
        for point in points():
            if 3 * point.count * point.size**2 * itemsize(point.dtype) > memory:
                continue
            if point.way is Way.STACK and not device_fits(torch.device("cuda")):
                continue
            say(f"{point.dtype} {mode_of(point.way, point.count)} {point.size}")
            torch.backends.cuda.matmul.allow_tf32 = point.dtype == "tf32"
            seconds = settled(_products(point))
            rate = 2 * point.count * point.size**3 / seconds
            yield GemmRate(
                point.dtype, point.size, point.size, point.size, rate, mode_of(point.way, point.count), "cublas"
            )
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _products(point: Point) -> Callable[[], Any]:
    import torch

    dtype = torch.float32 if point.dtype == "tf32" else getattr(torch, point.dtype)
    shape = (point.count, point.size, point.size)
    # Full-range random numbers: zeros or small integers would draw less power and run faster.
    a, b = (torch.randn(shape, device="cuda", dtype=dtype) for _ in range(2))
    out = torch.empty_like(a)
    if point.way is Way.BATCHED:
        return lambda: torch.bmm(a, b, out=out)
    if point.way is Way.STACK:
        return lambda: multiply_stack(a, b, out)
    if point.way is Way.LOOP:
        b = b.transpose(1, 2)
    return lambda: [torch.mm(a[r], b[r], out=out[r]) for r in range(point.count)]
