"""The products of a GPU that are measured: cubes, and the sizes of language models' layers and their schemes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..kernels.cuda.dtypes import itemsize
from ..kernels.cuda.level import CudaMethod
from ..kernels.cuda.stack import DTYPES as STACKED

DTYPES = ("bfloat16", "float16", "tf32", "float32", "float64")
"""The measured dtypes, in order."""

LAYERS = (
    (512, 32768),
    (1536, 24576),
    (2048, 7168),
    (3072, 9216),
    (4096, 12288),
    (7168, 1536),
    (7168, 18432),
    (12288, 3072),
    (16384, 7168),
)
"""Sizes k, n of single products besides the cubes: short and long k. Layers are no powers of two, and the vendor's
kernels for them are different.
"""

ROWS = (3072, 7680, 17408)
"""Sizes m of the single products."""

BLOCKS = {
    7: ((9216, 3584, 768), (9216, 1024, 3584), (2560, 2048, 4096)),
    26: ((5120, 1024, 2048), (2560, 768, 6144), (4096, 1792, 768), (4608, 3072, 1536)),
    49: ((3584, 1024, 3072), (1792, 768, 2560), (2560, 1792, 512), (768, 2048, 3072)),
    182: ((1280, 384, 3072), (512, 2048, 896), (2304, 896, 384)),
}
"""Batched products besides the cubes, by their number: the products of one or two levels of schemes on layers."""

STACKED_BLOCKS = {
    7: ((9216, 1536, 4608), (7168, 8192, 3584), (9216, 6144, 1536)),
    26: ((4096, 1024, 3072), (4608, 3072, 1536), (5120, 1536, 2048)),
    49: ((3584, 768, 3072), (4608, 3072, 768), (2560, 1792, 2048)),
}
"""The same for our own kernel, in whole tiles."""


@dataclass(frozen=True)
class Point:
    """One rate to measure: `count` products of one size by one method (None: a single product)."""

    dtype: str
    sizes: tuple[int, int, int]
    method: CudaMethod | None
    count: int

    @property
    def bytes(self) -> int:
        """Bytes of the operands and results."""
        m, k, n = self.sizes
        return self.count * (m * k + k * n + m * n) * itemsize(self.dtype)


def points(dtype: str) -> Iterator[Point]:
    """Yield the measured points of a dtype: whole products, and those of one to three levels."""
    for sizes in (*cubes(1024, 2048, 4096, 8192, 16384), *((m, k, n) for k, n in LAYERS for m in ROWS)):
        yield Point(dtype, sizes, None, 1)
    square = {7: cubes(1024, 4096), 49: cubes(512, 2048), 343: cubes(256, 1024)}
    yield from stacks(dtype, CudaMethod.BATCHED, square, BLOCKS)
    if dtype in STACKED:
        square = {7: cubes(2048, 4096, 8192), 49: cubes(1024, 2048, 4096)}
        yield from stacks(dtype, CudaMethod.STACK, square, STACKED_BLOCKS)


def cubes(*sizes: int) -> tuple[tuple[int, int, int], ...]:
    """Return the sizes of products of square matrices."""
    return tuple((size, size, size) for size in sizes)


def stacks(dtype: str, method: CudaMethod, *groups: Mapping[int, tuple[tuple[int, int, int], ...]]) -> Iterator[Point]:
    """Yield points of one method, from sizes by the number of products."""
    for group in groups:
        for count, several in group.items():
            for sizes in several:
                yield Point(dtype, sizes, method, count)
