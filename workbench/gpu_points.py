"""The products of a GPU that are measured: cubes, and the sizes of language models' layers and their schemes.

Single products besides the cubes have short and long k: layers are no powers of two, and the vendor's kernels for them
are different. Batched products are those of one to three levels of schemes on layers; those of our own kernel are in
whole tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..kernels.cuda.dtypes import itemsize
from ..kernels.cuda.level import CudaMethod
from ..kernels.cuda.stack import DTYPES as STACKED
from .bench.table import table
from .products import Sizes

DTYPES = ("bfloat16", "float16", "tf32", "float32", "float64")
"""The measured dtypes, in order."""


@dataclass(frozen=True)
class Point:
    """One rate to measure: `count` products of one size by one method (None: a single product); "": of any dtype."""

    sizes: Sizes
    method: CudaMethod | None
    count: int
    dtype: str = ""

    @property
    def bytes(self) -> int:
        """Bytes of the operands and results."""
        m, k, n = self.sizes
        return self.count * (m * k + k * n + m * n) * itemsize(self.dtype)


def points(dtype: str) -> Iterator[Point]:
    """Yield the measured points of a dtype: whole products, and those of one to three levels."""
    for one in table(Point, "gpu_points", CudaMethod=CudaMethod):
        if one.method is not CudaMethod.STACK or dtype in STACKED:
            yield replace(one, dtype=dtype)
