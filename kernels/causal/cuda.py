"""Strategies for triangular products on a GPU: strips by the vendor, our kernel, and triangular schemes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...schemes_db.program import ProductKind
from ...schemes_db.symmetry import Triangle, triangle_of
from ..cuda.cost_model import CudaCostModel, missing_rates
from ..cuda.executor import TensorExecutor
from ..cuda.level import CudaLevel, CudaMethod, cuda_level
from ..cuda.shape import LINE
from ..cuda.triangular import TriangularProduct, multiply
from ..cuda.triangular_products import HALF_STRIPS, squares_of, strips, strips_of, vendor
from ..measured import measured
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Proposal, Stage
from ..precision import TF32
from ..ranges import ranges
from ..request import Layout, Request
from .candidates import TriangularSource, TriangularStrategy

SCHEME = "4x4x4-tri-out-r34-sparse"
"""22 full and 12 half products with few coefficients. Measured on an H200, float32, L = d = 8192: schemes with more
coefficients take 0.956 to 0.985 of the time of Exact Causal Attention; in bfloat16 the sparse ones are faster still.
"""

TWO_LEVELS = f"{SCHEME}/strassen"
"""178 full and 48 half products for masked products in float32. Measured on an H200, L and d from 4096 to 16384: 4 to
8% faster than one level, with 2.0 to 2.1 times the error of the plain product (one level 1.5 times). With a triangular
factor the error is 2.5 to 4.8 times, as the vendor's sums are shorter there, so that it is never proposed."""

PRICES = measured("causal")


@dataclass(frozen=True)
class CudaTriangular(TriangularStrategy):
    """A strategy for triangular products on a GPU.

    - vendor: the whole product, masked afterwards.
    - strips: row strips of one GEMM each: the baseline.
    - kernel: our Triton kernel, which skips tiles outside the triangle.
    - scheme: a triangular scheme: sums, full products in one batched call, half ones as squares or strips.
    """

    methods = (CudaMethod.BATCHED.value,)

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        reason = None if self.baseline else missing_rates(machine, request.arithmetic)
        return reason or super().propose(request, machine)

    def schemes(self, request: Request, machine: Machine) -> Sequence[str]:
        if request.arithmetic not in ("float32", "float64"):
            return ()
        two = request.its_triangle.side == "out" and request.arithmetic == "float32"
        return (TWO_LEVELS, SCHEME) if two else (SCHEME,)

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        if self.name == "scheme":
            program, triangle = candidate.own_program, request.its_triangle
            if triangle_of(program.target) not in (triangle, Triangle(triangle.side, triangle.upper)):
                return f"{program.target} is not the triangular product that is asked for"
            if not _level(candidate, _oriented(request)[0]).fits(*_oriented(request)[1:]):
                return f"{request.m} x {request.k} x {request.n} is not a multiple of the grid of {program.target}"
        return None

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        stages = _STAGES[self.name](candidate, request, CudaCostModel.of(machine))
        seconds = sum(stage.seconds or 0.0 for stage in stages)
        return [*stages, Stage("launches", 0, 0, max(0.0, _host_seconds(self.name, request) - seconds))]

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`; allocated by torch."""
        if request.is_empty:
            return 0
        item = request.itemsize
        if self.name == "scheme":
            triangle, m, k, n = _oriented(request)
            level = _level(candidate, triangle)
            bm, bk, bn = level.blocks(m, k, n, request.itemsize)
            return sum(level.kinds.values()) * (bm * bk + bk * bn + bm * (bn + 1)) * item
        if self.name == "strips" and request.its_triangle.side != "out":
            return -(-request.m // strips_of(request.m)) * request.k * item
        return 0

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        triangle, rows, _, _ = _oriented(request)
        by_strips = partial(strips, triangle=triangle, count=strips_of(rows))
        if self.name == "kernel":
            core = TriangularProduct(request, partial(multiply, triangle=triangle), together=True)
        elif self.name == "scheme":
            core = TriangularProduct(request, partial(_one, _level(candidate, triangle)), by_strips)
        elif self.name == "vendor":
            core = TriangularProduct(request, partial(vendor, triangle=triangle), by_strips)
        else:
            core = TriangularProduct(request, by_strips)
        return TensorExecutor(request, core, self.workspace(candidate, request, machine))


def _one(level: CudaLevel, a: Any, b: Any, out: Any) -> None:
    level.run(a[None], b[None], out[None])


def _level(candidate: Candidate, triangle: Triangle) -> CudaLevel:
    """Return the level of a candidate's scheme for a triangle on the left or of the result."""
    source = candidate.source
    assert isinstance(source, TriangularSource)  # as all sources of this family are
    return cuda_level(replace(source, triangle=replace(triangle, shared=False)).program)


def _oriented(request: Request) -> tuple[Triangle, int, int, int]:
    """Return the triangle and sizes as executed: a right factor becomes the left one of the transposed product."""
    triangle = request.its_triangle
    m, k, n = request.shape
    return (Triangle("left", not triangle.upper), n, k, m) if triangle.side == "right" else (triangle, m, k, n)


def _host_seconds(name: str, request: Request) -> float:
    """Return the seconds that the host takes to launch everything, hidden if the device takes longer."""
    triangle, m, _, _ = _oriented(request)
    each = 1.0
    if name == "strips":
        each = strips_of(m) * (1 if triangle.side == "out" else 2)
    return PRICES.host_call[name] + request.items * each * PRICES.host[name]


def _vendor_stages(candidate: Candidate, request: Request, model: CudaCostModel) -> list[Stage]:
    triangle, m, k, n = _oriented(request)
    item, items = request.itemsize, request.items
    cut = 2 * (m * n if triangle.side == "out" else m * k) * item * items
    moved = items * (m * k + k * n + m * n) * item
    product = float(model.gemm(request.arithmetic, m, k, n, items))
    return [
        Stage(f"{items} products {m}x{k}x{n}", 2 * items * m * k * n, moved, product, (m, k, n)),
        Stage("cut", 0, cut, float(model.combine(cut))),
    ]


def _strip_stages(candidate: Candidate, request: Request, model: CudaCostModel) -> list[Stage]:
    triangle, m, k, n = _oriented(request)
    item, items, count = request.itemsize, request.items, strips_of(m)
    height = m / count
    reach = height * np.arange(1, count + 1)
    out = triangle.side == "out"
    inner, across = (np.full(count, float(k)), reach) if out else (reach, np.full(count, float(n)))
    seconds = model.gemm(request.arithmetic, height, inner, across, 1)
    seconds = items * float(np.maximum(seconds, model.overhead(1)).sum())
    flops = 2 * items * float((height * inner * across).sum())
    cut = items * item * (m * n / 2 + 2 * m * height if out else m * k + m * height)
    rate = model.profile.bandwidth or np.nan
    calls = items * count * float(model.overhead(3))
    return [
        Stage(f"{items * count} strips of {height:.0f} of {m}x{k}x{n}", flops, 0, seconds, (int(height), k, n)),
        Stage("cut", 0, cut, max(cut / rate, calls)),
    ]


def _kernel_stages(candidate: Candidate, request: Request, model: CudaCostModel) -> list[Stage]:
    _, m, k, n = _oriented(request)
    items = request.items
    part = min(1.0, (1 + PRICES.kernel_tile / max(m, 1)) / 2)
    whole = float(model.gemm(request.arithmetic, m, k, n, items, "batched" if items > 1 else "whole"))
    if np.isnan(whole):
        whole = float(model.gemm(request.arithmetic, m, k, n, items))
    share = PRICES.kernel_share[request.arithmetic][request.layouts[1] is Layout.COLUMNS]
    if request.precision == TF32 and k % 4 == 0 and k * request.itemsize % LINE:
        share /= 2
    if request.arithmetic == "float32" and k % 4:
        share = min(share, 0.25)
    seconds = max(part * whole / share, float(model.overhead(1)))
    moved = items * (m * k + k * n + m * n) * request.itemsize
    return [Stage(f"{items} triangles of {m}x{k}x{n}", 2 * items * part * m * k * n, moved, seconds, (m, k, n))]


def _scheme_stages(candidate: Candidate, request: Request, model: CudaCostModel) -> list[Stage]:
    """Stages of the sums by present blocks, full products in one batched call, half ones as squares or strips."""
    triangle, m, k, n = _oriented(request)
    item, items, dtype = request.itemsize, request.items, request.arithmetic
    level = _level(candidate, triangle)
    bm, bk, bn = level.blocks(m, k, n, request.itemsize)
    kinds = level.kinds
    rank = sum(kinds.values())
    half = 0.5 if triangle.side == "left" else 1.0
    merged = rank * bm * bn - sum(number for kind, number in kinds.items() if kind.side == "out") * bm * bn / 2
    sums = (
        ("Combine A", half * m * k + rank * bm * bk),
        ("Combine B", k * n + rank * bk * bn),
        ("Combine H", m * n + merged),
    )
    stages = [Stage(name, 0, items * size * item, items * float(model.combine(size * item))) for name, size in sums]
    products = []
    for kind, number in kinds.items():
        seconds, part = _product_seconds(kind, number, (bm, bk, bn), dtype, model)
        flops = 2.0 * items * number * part * bm * bk * bn
        moved = items * number * (bm * bk + bk * bn + bm * bn) * item
        name = f"{items * number} {kind.value} products {bm}x{bk}x{bn}"
        products.append(Stage(name, flops, moved, items * seconds, (bm, bk, bn)))
    return [*stages[:2], *products, stages[2]]


def _product_seconds(
    kind: ProductKind, number: int, sizes: tuple[int, int, int], dtype: str, model: CudaCostModel
) -> tuple[float, float]:
    """Return the seconds of so many products of a kind, and their arithmetic as a fraction of the full products'."""
    bm, bk, bn = sizes
    if not kind.half:
        return float(model.gemm(dtype, bm, bk, bn, number, "batched")), 1.0
    if kind.side == "out":
        squares = [(size, number * bm // step) for size, step in squares_of(bm)]
        seconds = sum(float(model.gemm(dtype, size, bk, size, count, "batched")) for size, count in squares)
        return seconds, sum(count * size * size for size, count in squares) / (number * bm * bn)
    seconds = work = 0.0
    edge = bn if kind.side == "right" else bm
    for start, stop in ranges(edge, HALF_STRIPS):
        shape = (stop - start, stop, bn) if kind.side == "left" else (bm, stop, stop - start)
        seconds += float(model.gemm(dtype, *shape, number, "batched"))
        work += (stop - start) * stop
    return seconds, work / edge**2


_STAGES: dict[str, Callable[[Candidate, Request, CudaCostModel], list[Stage]]] = {
    "vendor": _vendor_stages,
    "strips": _strip_stages,
    "kernel": _kernel_stages,
    "scheme": _scheme_stages,
}


STRATEGIES = (
    CudaTriangular("strips", baseline=True),
    *(CudaTriangular(name) for name in ("vendor", "kernel", "scheme")),
)
