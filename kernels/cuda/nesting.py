"""The maps of a program as two levels, for combine kernels that loop over the outer one."""

from __future__ import annotations

from ...schemes_db.program import Coefficient, ProductKind, Program
from ..codegen.maps import Block, expanded, maps_of
from ..codegen.triton_nest import MOST_TURNS, Nest
from .flat_program import flat_program

LARGE = 200
"""Sources and results of a map from which a loop is used: with fewer, straight-line code compiles within a second."""


def nests_of(program: Program) -> tuple[Nest | None, Nest | None, Nest | None]:
    """Return the maps of A, B and C of a program as two levels; None for one that is to be straight-line code.

    The results of `FlatProgram.left` and `right` are its slabs, all blocks of C in row-major order its results. The
    coefficients of the outer level must be -1 and 1. Its sums share no parts: where those of the program do, they are
    rounded in another order.
    """
    flat = flat_program(program)
    rows, cols = flat.program.target.m, flat.program.target.n
    whole = tuple((i, j) for i in range(rows) for j in range(cols))
    blocks = (flat.maps.left_blocks, flat.maps.right_blocks, whole)
    left, right, merge = (_nest(program, side, some) for side, some in enumerate(blocks))
    return left, right, merge


def _nest(program: Program, side: int, blocks: tuple[Block, ...]) -> Nest | None:
    inner = dict(program.inner)
    if list(inner) != [ProductKind.FULL]:
        return None
    outer = maps_of(Program(program.target, program.ring, program.ops))
    below = flat_program(inner[ProductKind.FULL])
    products = (*outer.products, *below.maps.products)
    rank = len(outer.products)
    if rank > MOST_TURNS or any(op.kind.half for op in products) or rank * below.rank + len(blocks) < LARGE:
        return None
    linear, of = ((outer.left, outer.left_of), (outer.right, outer.right_of), (outer.merge, ()))[side]
    sums = [expanded(linear, i) for i in range(len(linear.results))]
    outside = (outer.left_blocks, outer.right_blocks, outer.stored)[side]
    inside = (below.maps.left_blocks, below.maps.right_blocks, below.maps.stored)[side]
    rows, cols = _grids(below.program)[side]
    places = [[(i * rows + p, j * cols + q) for p, q in inside] for i, j in outside]
    found = {block: index for index, block in enumerate(blocks)}
    if any(place not in found for line in places for place in line):
        return None
    dense: list[list[Coefficient]] = [[0] * len(outside) for _ in range(rank)]
    if side == 2:
        for block, terms in enumerate(sums):
            for product, coefficient in terms:
                dense[product][block] = coefficient
        inner_map = below.merge
    else:
        for product, result in enumerate(of):
            for block, coefficient in sums[result]:
                dense[product][block] = coefficient
        inner_map = (below.left, below.right)[side]
    if any(value not in (-1, 0, 1) for row in dense for value in row):
        return None
    return Nest(
        tuple(tuple(int(value) for value in row) for row in dense),
        inner_map,
        tuple(tuple(found[place] for place in line) for line in places),
    )


def _grids(program: Program) -> tuple[Block, Block, Block]:
    m, k, n = program.target.shape
    return (m, k), (k, n), (m, n)
