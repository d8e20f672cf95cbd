"""Linear maps of blocks and whole products in plain torch: the reference for the generated kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ...schemes_db.grids import Kind
from ...schemes_db.program import Program, Terms
from ..arrays import Tensor, torch
from ..codegen import naive
from ..codegen.maps import LinearMap, ProgramMaps, maps_of
from ..codegen.triton_text import Direction
from .combine import Combination


def apply_map(linear: LinearMap, blocks: Sequence[Tensor]) -> list[Tensor]:
    """Return the results of the map on blocks of one shape.

    Sums are computed in float32, in float64 for float64, and in int32 for integers, modulo 2^32. A result without
    terms is zero.
    """
    dtype = blocks[0].dtype
    real = torch.float64 if dtype == torch.float64 else torch.float32 if dtype.is_floating_point else torch.int32
    return [result.to(dtype) for result in naive.apply_map(linear, [block.to(real) for block in blocks])]


def combine(combination: Combination, matrix: Tensor, stack: Tensor) -> None:
    """Run `combination.run`, or plain torch on CPU tensors if Triton does not interpret its kernels."""
    if takes_triton(matrix):
        combination.run(matrix, stack)
        return
    height, width = stack.shape[2:]
    grid = max(i for i, _ in combination.blocks) + 1, max(j for _, j in combination.blocks) + 1
    places = list(zip(combination.blocks, combination.form.kinds, strict=True))
    for item, slabs in zip(matrix, stack, strict=True):
        if combination.form.direction is Direction.TO_STACK:
            cut = _blocks(_padded(item, height, width, grid), grid)
            results = apply_map(combination.map, [_part(cut[block], kind) for block, kind in places])
            for slab, result in zip(slabs, results, strict=True):
                slab.copy_(result)
        else:
            for ((i, j), kind), result in zip(places, apply_map(combination.map, list(slabs)), strict=True):
                target = item[i * height : (i + 1) * height, j * width : (j + 1) * width]
                target.copy_(_part(result, kind)[: target.shape[0], : target.shape[1]])


def takes_triton(tensor: Tensor) -> bool:
    """Return whether Triton runs, compiles or interprets kernels for this tensor."""
    return bool(tensor.is_cuda or tensor.is_meta or _interpreted())


@lru_cache(maxsize=1)
def _interpreted() -> bool:
    """Return whether Triton interprets its kernels on CPU tensors."""
    try:
        from triton import knobs
    except ImportError:
        return False
    return bool(knobs.runtime.interpret)


def stack_product(lefts: Tensor, rights: Tensor) -> Tensor:
    """Return A_r B_r^T modulo 2^32 (count, m, n) for stacks of A_r (m, k) and B_r (n, k) of int8."""
    return (lefts.to(torch.int64) @ rights.to(torch.int64).mT).to(torch.int32)


def _part(block: Tensor, kind: Kind) -> Tensor:
    if kind is Kind.LOWER:
        return block.tril()
    return block.triu() if kind is Kind.UPPER else block


def multiplied(maps: ProgramMaps, grid: tuple[int, int, int], a: Tensor, b: Tensor) -> Tensor:
    """Compute a b by the maps of one flat program on this grid, with zero-padded copies of a and b."""
    m, n = a.shape[0], b.shape[1]
    bm, bk, bn = (-(-size // parts) for size, parts in zip((m, a.shape[1], n), grid, strict=True))
    left, right = _blocks(_padded(a, bm, bk, grid[:2]), grid[:2]), _blocks(_padded(b, bk, bn, grid[1:]), grid[1:])
    lefts = apply_map(maps.left, [left[block] for block in maps.left_blocks])
    rights = apply_map(maps.right, [right[block] for block in maps.right_blocks])
    products = [lefts[i] @ rights[j] for i, j in zip(maps.left_of, maps.right_of, strict=True)]
    stored = dict(zip(maps.stored, apply_map(maps.merge, products), strict=True))
    out = a.new_zeros((bm * grid[0], bn * grid[2]))
    for place, target in _blocks(out, (grid[0], grid[2])).items():
        if place in stored:
            target.copy_(stored[place])
    return out[:m, :n]


def _padded(x: Tensor, height: int, width: int, grid: tuple[int, int]) -> Tensor:
    return torch.nn.functional.pad(x, (0, width * grid[1] - x.shape[1], 0, height * grid[0] - x.shape[0]))


def _blocks(x: Tensor, grid: tuple[int, int]) -> dict[tuple[int, int], Tensor]:
    """Return views of the blocks of a matrix that the grid divides."""
    height, width = x.shape[0] // grid[0], x.shape[1] // grid[1]
    return {
        (i, j): x[i * height : (i + 1) * height, j * width : (j + 1) * width]
        for i in range(grid[0])
        for j in range(grid[1])
    }


def by_products(program: Program, a: Tensor, b: Tensor) -> Tensor:
    """Compute a b with one task per product, which computes its own sums and adds to the blocks of C.

    Sizes must be multiples of the grid, and the program without shared sums. Libraries worked
    this way before group-parallel kernels; a competitor in benchmarks.
    """
    maps, (m, k, n) = maps_of(program), program.target.shape
    left, right = _blocks(a, (m, k)), _blocks(b, (k, n))
    out = a.new_zeros((a.shape[0], b.shape[1]))
    blocks = _blocks(out, (m, n))
    sides = ((maps.left, left, maps.left_blocks), (maps.right, right, maps.right_blocks))
    for r, places in enumerate(zip(maps.left_of, maps.right_of, strict=True)):
        sums = []
        for place, (linear, cut, sources) in zip(places, sides, strict=True):
            terms = _terms(linear, place)
            total = float(terms[0][0]) * cut[sources[terms[0][1]]]
            for coefficient, src in terms[1:]:
                total.add_(cut[sources[src]], alpha=float(coefficient))
            sums.append(total)
        made = sums[0] @ sums[1]
        for target, terms in zip(maps.stored, maps.merge.results, strict=True):
            for coefficient, src in terms:
                if src == r:
                    blocks[target].add_(made, alpha=float(coefficient))
    return out


def _terms(linear: LinearMap, result: int) -> Terms:
    """Return the terms of a result of a map without shared sums, through its own intermediate values."""
    terms = linear.results[result]
    while len(terms) == 1 and terms[0][1] >= linear.sources:
        terms = linear.lins[terms[0][1] - linear.sources]
    return terms
