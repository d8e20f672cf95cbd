"""Triangular products by recursive halving: two triangles of half the rows, and the square between them."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....kernels import Request
from ....kernels.cpu.executor import MatrixExecutor
from ....kernels.cpu.leaf import Leaf
from ....kernels.cpu.level import core_of
from ....kernels.cpu.threads import thread_count
from ....kernels.cpu.triangular_products import HalfProduct
from ....kernels.cpu.workspace import shared_pool
from ....kernels.cuda.executor import TensorExecutor
from ....kernels.cuda.level import cuda_level
from ....kernels.cuda.triangular import TriangularProduct
from ....kernels.cuda.triangular_products import vendor
from ....schemes_db.flatten import flatten
from ....schemes_db.program import Program
from ....schemes_db.resolve import resolve
from ....schemes_db.straightline import program_of
from ....schemes_db.symmetry import Triangle
from . import Array, Baseline

STRASSEN = "halving:strassen"
"""Halving, with Strassen's scheme for large squares; a name."""

BASE, SCHEME_ABOVE = 1024, 4096
"""On a GPU the largest number of rows of a triangle that is not halved, and that of a square from which two levels of a
scheme compute it. Measured on an H200, float32."""

CPU_BASE, CPU_SCHEME_ABOVE = 256, 4096
"""The same on a processor, with one level, and with the rows of the triangle that the square is in."""


def baseline(request: Request, name: str) -> Baseline:
    """Return halving, by the vendor's products alone or with Strassen's scheme in large squares."""
    dense, triangle = program_of(resolve("strassen")[0]) if name == STRASSEN else None, request.its_triangle
    turned = triangle.side == "right"  # run as the left factor of the transposed product
    one = partial(halving, triangle=Triangle("left", not triangle.upper) if turned else triangle, dense=dense)

    def run(a: Array, b: Array, out: Array) -> None:
        left, right = (np.broadcast_to(x, (*request.batch, *x.shape[-2:])) for x in (a, b))
        for index in np.ndindex(request.batch):
            given = left[index], right[index], out[index]
            one(given[1].T, given[0].T, given[2].T) if turned else one(*given)

    m, k, n = request.shape
    if request.device == "cpu":  # at most half a result, and the sums of one level in the largest square
        return Baseline(request, name, run, 2 * request.itemsize * (m * k + k * n + m * n))
    return Baseline(request, name, TensorExecutor(request, TriangularProduct(request, one), 0).run, 0)


def halving(a: Array, b: Array, out: Array, triangle: Triangle, dense: Program | None = None) -> None:
    """Compute a triangular product by halves, in large squares by `dense`: one level, on a GPU two and of results only.

    The triangle is that of `a` (side "left") or of `out`.
    """
    on_cpu, size, of_result = isinstance(out, np.ndarray), len(out), triangle.side == "out"
    if size <= (CPU_BASE if on_cpu else BASE):
        _whole(a, b, out, triangle)
        return
    half = size // 2
    top, bottom = slice(None, half), slice(half, None)
    far, near = (top, bottom) if triangle.upper else (bottom, top)
    large = size > CPU_SCHEME_ABOVE if on_cpu else of_result and half >= SCHEME_ABOVE
    for some in (top, bottom):
        if of_result:
            halving(a[some], b[:, some], out[some, some], triangle, dense)
        else:
            halving(a[some, some], b[some], out[some], triangle, dense)
    if of_result:
        out[near, far] = 0
        _square(a[far], b[:, near], out[far, near], False, dense if large else None)
    else:
        _square(a[far, near], b[near], out[far], True, dense if large else None)


def _whole(a: Array, b: Array, out: Array, triangle: Triangle) -> None:
    """Compute a triangle that is not halved."""
    if isinstance(out, np.ndarray):
        request = Request.of(a, b, out)
        MatrixExecutor(request, HalfProduct(triangle, request.shape, request.dtype)).run(a, b, out)
    else:
        vendor(a, b, out, triangle)


def _square(a: Array, b: Array, out: Array, adds: bool, dense: Program | None) -> None:
    """Compute out = a b, or add it to `out`: on a GPU by two levels of `dense`, else by one."""
    if isinstance(out, np.ndarray):
        with shared_pool.take(out.nbytes) as arena:
            found = arena.array(out.shape, out.dtype) if adds else out
            request = Request.of(a, b, found)
            core = Leaf(request.shape, request.dtype) if dense is None else core_of(dense, request)
            MatrixExecutor(request, core, None, thread_count()).run(a, b, found)
            if adds:
                out += found
    elif dense is not None:
        cuda_level(flatten(dense, dense)).run(a[None], b[None], out[None])
    else:
        out.addmm_(a, b, beta=int(adds))
