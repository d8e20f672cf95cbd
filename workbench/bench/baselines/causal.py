"""Triangular products by recursive halving: two triangles of half the rows, and the square between them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from ....kernels import Request
from ....kernels.codegen.flatten import flatten
from ....kernels.cpu.executor import MatrixExecutor
from ....kernels.cpu.level import Level
from ....kernels.cpu.threads import thread_count
from ....kernels.cpu.triangular_products import HalfProduct
from ....kernels.cuda.level import cuda_level
from ....kernels.cuda.strips import vendor
from ....kernels.cuda.triangular_batches import triangular_executor
from ....kernels.request import Layout
from ....schemes_db.program import Program
from ....schemes_db.resolve import resolve
from ....schemes_db.straightline import program_of
from ....schemes_db.symmetry import Triangle
from .product import Baseline

Tensor = Any

STRASSEN = "halving:strassen"
"""Halving, with Strassen's scheme for large squares; a name."""

BASE, SCHEME_ABOVE = 1024, 4096
"""On a GPU the largest number of rows of a triangle that is not halved, and that of a square from which two levels of a
scheme compute it. Measured on an H200, float32."""

CPU_BASE, CPU_SCHEME_ABOVE = 256, 4096
"""The same on a processor, with one level, and with the rows of the triangle that the square is in."""


def baseline(request: Request, name: str) -> Baseline:
    """Return halving, by the vendor's products alone or with Strassen's scheme in large squares."""
    dense = program_of(resolve("strassen")[0]) if name == STRASSEN else None
    executor = _on_cpu(request, dense) if request.device == "cpu" else _on_gpu(request, dense)
    return Baseline(request, name, executor.run, executor.workspace)


def halving(a: Tensor, b: Tensor, out: Tensor, triangle: Triangle, dense: Program | None = None) -> None:
    """Compute a triangular product of tensors on a GPU, large squares of a result by two levels of `dense`.

    The triangle is that of `a` (side "left") or of `out`.
    """
    import torch

    size, upper = len(out), triangle.upper
    if size <= BASE:
        vendor(a, b, out, triangle)
        return
    half = size // 2
    top, bottom = slice(None, half), slice(half, None)
    if triangle.side == "out":
        halving(a[top], b[:, top], out[top, top], triangle, dense)
        halving(a[bottom], b[:, bottom], out[bottom, bottom], triangle, dense)
        rows, cols = (top, bottom) if upper else (bottom, top)
        out[cols, rows] = 0
        if dense is not None and half >= SCHEME_ABOVE:
            cuda_level(flatten(dense, dense)).run(a[None, rows], b[None, :, cols], out[None, rows, cols])
        else:
            torch.mm(a[rows], b[:, cols], out=out[rows, cols])
        return
    halving(a[top, top], b[top], out[top], triangle, dense)
    halving(a[bottom, bottom], b[bottom], out[bottom], triangle, dense)
    far, near = (top, bottom) if upper else (bottom, top)
    out[far].addmm_(a[far, near], b[near])


def _on_cpu(request: Request, dense: Program | None) -> Any:
    triangle = request.triangle
    assert triangle is not None  # `family_of` says so
    first, second, third = (layout is Layout.COLUMNS for layout in request.layouts)
    core = HalfProduct(
        triangle,
        request.shape,
        request.dtype,
        base=CPU_BASE,
        dense=None if dense is None else partial(Level, dense),
        dense_above=CPU_SCHEME_ABOVE,
        by_columns=(first, second, third),
    )
    return MatrixExecutor(request, core, None, thread_count())


def _on_gpu(request: Request, dense: Program | None) -> Any:
    triangle = request.triangle
    assert triangle is not None  # `family_of` says so
    if triangle.side == "right":  # run as the left factor of the transposed product
        triangle = replace(triangle, side="left", upper=not triangle.upper)
    return triangular_executor(request, partial(halving, triangle=triangle, dense=dense), None, 0)
