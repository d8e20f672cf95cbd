"""Programs of triangular products on torch tensors, every value rounded to their dtype."""

from __future__ import annotations

from typing import Any

from ...kernels.causal.naive import triangular
from ...kernels.codegen.maps import LinearMap, maps_of
from ...kernels.codegen.naive import apply_map
from ...kernels.cuda.naive import blocks_of, padded
from ...schemes_db.grids import Kind, Kinds
from ...schemes_db.program import Program


def by_program(program: Program, a: Any, b: Any) -> Any:
    """Run a program of one level on torch matrices (M, K) and (K, N), every value rounded to their dtype.

    If sizes are no multiples of the grid, the operands are padded with zeros.
    """
    target, maps = program.target, maps_of(program)
    (m, k), n = a.shape, b.shape[1]
    height, depth, width = (-(-size // parts) for size, parts in zip((m, k, n), target.shape, strict=True))

    def summed(linear: LinearMap, x: Any, kinds: Kinds, places: Any) -> list[Any]:
        blocks = blocks_of(x, (len(kinds), len(kinds[0])))
        return apply_map(linear, [_part(blocks[i, j], kinds[i][j]) for i, j in places])

    lefts = summed(maps.left, padded(a, height, depth, (target.m, target.k)), target.a, maps.left_blocks)
    rights = summed(maps.right, padded(b, depth, width, (target.k, target.n)), target.b, maps.right_blocks)
    products = []
    for op, left, right in zip(maps.products, maps.left_of, maps.right_of, strict=True):
        product = lefts[left] @ rights[right]
        products.append(triangular(product, op.kind.of_upper) if op.kind.side == "out" else product)
    out = a.new_zeros(height * target.m, width * target.n)
    blocks = blocks_of(out, (target.m, target.n))
    for (i, j), total in zip(maps.stored, apply_map(maps.merge, products), strict=True):
        blocks[i, j].copy_(_part(total, target.c[i][j]))
    return out[:m, :n]


def _part(block: Any, kind: Kind) -> Any:
    return triangular(block, kind is Kind.UPPER) if kind.half else block
