"""Programs of triangular products on torch tensors, every value rounded to their dtype."""

from __future__ import annotations

from typing import Any

from ...errors import PlanError
from ...kernels.arrays import torch
from ...kernels.causal.naive import triangular
from ...schemes_db.grids import Kind
from ...schemes_db.program import Lin, Load, Product, Program, Terms


def by_program(program: Program, a: Any, b: Any) -> Any:
    """Run a program of one level on torch tensors (..., M, K) and (..., K, N), every value rounded to their dtype.

    If sizes are no multiples of the grid, the operands are padded with zeros.

    Raises:
        PlanError: the program has inner levels.
    """
    if program.inner:
        raise PlanError("the plain evaluation works one level")
    target = program.target
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    bm, bk, bn = (-(-size // parts) for size, parts in zip((m, k, n), target.shape, strict=True))
    a = torch.nn.functional.pad(a, (0, bk * target.k - k, 0, bm * target.m - m))
    b = torch.nn.functional.pad(b, (0, bn * target.n - n, 0, bk * target.k - k))
    out = a.new_zeros((*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), bm * target.m, bn * target.n))
    sides = {"A": (a, target.a, bm, bk), "B": (b, target.b, bk, bn)}
    values: dict[int, Any] = {}
    for op in program.ops:
        if isinstance(op, Load):
            matrix, kinds, height, width = sides[op.operand]
            p, q = op.block
            block = matrix[..., p * height : (p + 1) * height, q * width : (q + 1) * width]
            values[op.dst] = _part(block, kinds[p][q])
        elif isinstance(op, Lin):
            values[op.dst] = _sum(op.terms, values)
        elif isinstance(op, Product):
            product = values[op.left] @ values[op.right]
            values[op.dst] = triangular(product, op.kind.of_upper) if op.kind.side == "out" else product
        else:
            p, q = op.block
            block = out[..., p * bm : (p + 1) * bm, q * bn : (q + 1) * bn]
            block.copy_(_part(_sum(op.terms, values), target.c[p][q]))
    return out[..., :m, :n]


def _part(block: Any, kind: Kind) -> Any:
    if kind.half:
        return triangular(block, kind is Kind.UPPER)
    return block if kind is Kind.FULL else block * 0


def _sum(terms: Terms, values: dict[int, Any]) -> Any:
    total = None
    for coefficient, src in terms:
        term = values[src] if coefficient == 1 else values[src] * float(coefficient)
        total = term if total is None else total + term
    return total
