"""Usual ways to run a scheme on tensors that ours are compared with."""

from __future__ import annotations

from ...kernels.arrays import Tensor
from ...kernels.codegen.maps import LinearMap, ProgramMaps, maps_of
from ...kernels.cuda.naive import apply_map, blocks_of, padded
from ...schemes_db.program import Program, Terms


def multiplied(maps: ProgramMaps, grid: tuple[int, int, int], a: Tensor, b: Tensor) -> Tensor:
    """Compute a b by the maps of one flat program on this grid, with zero-padded copies of a and b."""
    m, n = a.shape[0], b.shape[1]
    bm, bk, bn = (-(-size // parts) for size, parts in zip((m, a.shape[1], n), grid, strict=True))
    left, right = blocks_of(padded(a, bm, bk, grid[:2]), grid[:2]), blocks_of(padded(b, bk, bn, grid[1:]), grid[1:])
    lefts = apply_map(maps.left, [left[block] for block in maps.left_blocks])
    rights = apply_map(maps.right, [right[block] for block in maps.right_blocks])
    products = [lefts[i] @ rights[j] for i, j in zip(maps.left_of, maps.right_of, strict=True)]
    stored = dict(zip(maps.stored, apply_map(maps.merge, products), strict=True))
    out = a.new_zeros((bm * grid[0], bn * grid[2]))
    for place, target in blocks_of(out, (grid[0], grid[2])).items():
        if place in stored:
            target.copy_(stored[place])
    return out[:m, :n]


def by_products(program: Program, a: Tensor, b: Tensor) -> Tensor:
    """Compute a b with one task per product, which computes its own sums and adds to the blocks of C.

    Sizes must be multiples of the grid, and the program without shared sums. Libraries worked
    this way before group-parallel kernels; a competitor in benchmarks.
    """
    maps, (m, k, n) = maps_of(program), program.target.shape
    left, right = blocks_of(a, (m, k)), blocks_of(b, (k, n))
    out = a.new_zeros((a.shape[0], b.shape[1]))
    blocks = blocks_of(out, (m, n))
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
