"""Triangular products of tensors on a GPU: the triangular-skipping kernel, strips of the vendor's GEMM, or a scheme."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

from ...errors import PlanError
from ...schemes_db.program import ProductKind
from ...schemes_db.straightline import program_of
from ...schemes_db.symmetry import Triangle
from ..api import certified
from ..cpu.strips import Sizes, check_triangle, ranges
from ..cuda.level import CudaLevel, cuda_level
from ..cuda.triangular import multiply
from .choose import scheme_names, scheme_program

Tensor = Any

STRIP, MOST_STRIPS = 512, 16
"""Rows of a strip, and how many there are at most. Measured on an H200."""

SCHEME = "4x4x4-tri-out-r34-sparse"
"""22 full and 12 half products with few coefficients. Measured on an H200, float32, L = d = 8192: with more
coefficients they take 0.956 to 0.985 of the time of Exact Causal Attention; in bfloat16 the sparse ones less again."""

SPLIT = "2x2x2-tri-left-r6"
"""What half products are worked by where full ones are by a scheme on a grid of two."""

TWO_LEVELS = f"{SCHEME}/strassen"
"""178 full and 48 half products: what works masked products in float32. Measured on an H200, L and d from 4096 to
16384: 4 to 8% faster than one level, and 2.0 to 2.1 times as far off as the plain product (one level 1.5 times). With a
triangular factor they are 2.5 to 4.8 times as far off, as the vendor's sums are shorter there; float64 is slower."""

LEAST_FOR_SCHEME = 4096
"""All sizes of a strict float32 or float64 product that a scheme works. Measured on an H200."""

LEAST_IN_DOUBLE = 8192
"""The same for float64 with a triangular factor: shorter ones gain 3% at best, of which nothing is left at times."""


def causal_qk(q: Tensor, k: Tensor, way: str | None = None) -> Tensor:
    """See `products.causal_qk`."""
    square = min(q.shape[-2], k.shape[-2])
    if q.shape[-2] == k.shape[-2]:
        return _batched(q, k.mT, Triangle("out"), way)
    corner = _batched(q[..., :square, :], k[..., :square, :].mT, Triangle("out"), way)
    out = corner.new_zeros((*corner.shape[:-2], q.shape[-2], k.shape[-2]))
    out[..., :square, :square] = corner
    if q.shape[-2] > square:
        out[..., square:, :] = q[..., square:, :] @ _spread(k, q).mT
    return out


def causal_pv(p: Tensor, v: Tensor, way: str | None = None) -> Tensor:
    """See `products.causal_pv`."""
    rows, cols = p.shape[-2:]
    square = min(rows, cols)
    if rows == cols:
        return _batched(p, v, Triangle("left"), way)
    top = _batched(p[..., :square, :square], v[..., :square, :], Triangle("left"), way)
    out = top.new_empty((*top.shape[:-2], rows, top.shape[-1]))
    out[..., :square, :] = top
    if rows > square:
        out[..., square:, :] = p[..., square:, :] @ _spread(v, p)
    return out


def trmm(a: Tensor, b: Tensor, triangle: Triangle, transposed: bool, unit: bool, way: str | None = None) -> Tensor:
    """See `products.trmm`; `triangle` is that of op(A)."""
    factor = a.mT if transposed else a
    if unit:
        factor = factor.clone()
        factor.diagonal(dim1=-2, dim2=-1).fill_(1)
    if triangle.side == "left":
        return _batched(factor, b, triangle, way)
    # B A = (A^T B^T)^T, which leaves the heads that share a matrix on the right.
    return _batched(factor.mT, b.mT, Triangle("left", not triangle.upper), way).mT


def syrk(a: Tensor, triangle: Triangle, transposed: bool, way: str | None = None) -> Tensor:
    """See `products.syrk`."""
    left = a.mT if transposed else a
    return _batched(left, left.mT, Triangle("out", triangle.upper), way)


def _spread(shared: Tensor, like: Tensor) -> Tensor:
    """Keys or values repeated for the heads that share them."""
    if shared.ndim < 3 or shared.shape[-3] in (1, like.shape[-3]):
        return shared
    return shared.repeat_interleave(like.shape[-3] // shared.shape[-3], -3)


def _batched(a: Tensor, b: Tensor, triangle: Triangle, way: str | None) -> Tensor:
    """The product of all matrices of a batch; `b` may have fewer heads than `a`."""
    import torch

    if a.dtype != b.dtype:
        raise PlanError(f"operands are {a.dtype} and {b.dtype}; convert one with .to")
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise PlanError(f"operands of shapes {tuple(a.shape)} and {tuple(b.shape)} don't multiply")
    m, k = a.shape[-2:]
    n = b.shape[-1]
    check_triangle(triangle, (m, k, n))
    if a.ndim > 2 and b.ndim > 2 and b.shape[-3] and a.shape[-3] % b.shape[-3]:
        raise PlanError(f"{a.shape[-3]} heads can't share {b.shape[-3]}: the first must be a multiple of the second")
    batch = torch.broadcast_shapes(a.shape[:-3], b.shape[:-3])
    heads_a, heads_b = (x.shape[-3] if x.ndim > 2 else 1 for x in (a, b))
    heads = max(heads_a, heads_b)
    items_a = a.expand(*batch, heads_a, m, k).expand(*batch, heads, m, k) if heads_a == 1 else a
    items_a = items_a.expand(*batch, heads, m, k).reshape(-1, m, k)
    items_b = b.expand(*batch, heads_b, k, n).reshape(-1, k, n)
    out = a.new_empty((len(items_a), m, n))
    one = _one if way is not None else _leaner
    way = default_way(a, (m, k, n), triangle, len(items_a)) if way is None else way
    if way == "kernel":
        multiply(items_a, items_b, triangle, out)
    else:
        groups = max(heads // heads_b, 1) if heads_b else 1
        for i in range(len(items_a)):
            way = one(items_a[i], items_b[i // groups], out[i], triangle, way)
    shape = (*batch, heads) if max(a.ndim, b.ndim) > 2 else ()
    return out.reshape(*shape, m, n)


def default_way(a: Tensor, sizes: Sizes, triangle: Triangle, items: int = 1) -> str:
    """The kernel for half precision and for many small matrices, a scheme for large strict ones, else strips."""
    import torch

    masked, double = triangle.side == "out", a.dtype == torch.float64
    strict = double or (a.dtype == torch.float32 and not torch.backends.cuda.matmul.allow_tf32)
    if strict and min(sizes) >= (LEAST_IN_DOUBLE if double and not masked else LEAST_FOR_SCHEME):
        if masked and not double and not any(size % 8 for size in sizes):
            return TWO_LEVELS
        if not any(size % 4 for size in sizes):
            return SCHEME
    if a.dtype in (torch.float16, torch.bfloat16) or (items > 1 and max(sizes) <= 2048):
        return "kernel"
    return "strips"


def _leaner(a: Tensor, b: Tensor, out: Tensor, triangle: Triangle, way: str) -> str:
    """`_one`, by strips where memory does not hold the sums of a scheme: the way that it was."""
    import torch

    try:
        return _one(a, b, out, triangle, way)
    except torch.OutOfMemoryError:
        if way == "strips":
            raise
        warnings.warn(f"the GPU's memory does not hold the sums of {way}: strips in its place", stacklevel=5)
    return _one(a, b, out, triangle, "strips")


def _one(a: Tensor, b: Tensor, out: Tensor, triangle: Triangle, way: str) -> str:
    if way == "strips":
        strips(a, b, out, triangle, strips_of(len(out)))
        return way
    level = level_of(way, triangle)
    if not level.fits(a.shape[0], a.shape[1], b.shape[1]):
        strips(a, b, out, triangle, strips_of(len(out)))
    else:
        level.run(a[None], b[None], out[None])
    return way


def scheme_ways() -> tuple[str, ...]:
    """The names of schemes for triangular products that `level_of` knows, the one of two levels last."""
    return (*scheme_names(), TWO_LEVELS)


@lru_cache(maxsize=64)
def level_of(way: str, triangle: Triangle) -> CudaLevel:
    """The level of a scheme by name; of `NAME/strassen` two: half products fall into two full and four half ones.

    Raises:
        CatalogError: there is no such scheme.
        PlanError: it is not for triangular products.
    """
    from ...schemes_db.library import resolve

    name, _, below = way.partition("/")
    program = scheme_program(resolve(name)[0], triangle)
    if below:
        halves = {op.kind for op in program.products if op.kind.half}
        inner = {kind: scheme_program(resolve(SPLIT)[0], Triangle(kind.side, kind.of_upper)) for kind in halves}
        program = program.nested({ProductKind.FULL: program_of(certified(resolve(below)[0])), **inner})
    return cuda_level(program)


def strips_of(rows: int) -> int:
    """How many strips a triangle of so many rows is cut into."""
    return max(1, min(rows // STRIP, MOST_STRIPS))


def strips(a: Tensor, b: Tensor, out: Tensor, triangle: Triangle, count: int) -> None:
    """One GEMM a strip of rows, written in place: the honest baseline."""
    import torch

    upper = triangle.upper
    for start, stop in ranges(len(out), count):
        rows = slice(start, stop)
        reach = slice(start, None) if upper else slice(None, stop)
        diagonal = slice(None, stop - start) if upper else slice(start, stop)
        if triangle.side == "out":
            torch.mm(a[rows], b[:, reach], out=out[rows, reach])
            block = out[rows, reach][:, diagonal]
            block.copy_(block.triu() if upper else block.tril())
            out[rows, slice(None, start) if upper else slice(stop, None)] = 0
        else:
            strip = a[rows, reach].clone()
            block = strip[:, diagonal]
            block.copy_(block.triu() if upper else block.tril())
            torch.mm(strip, b[reach], out=out[rows])
