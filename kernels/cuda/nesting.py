"""The maps of a program as two levels, for combine kernels that loop over one of them."""

from __future__ import annotations

from ...schemes_db.program import Coefficient, ProductKind, Program
from ..codegen.maps import Block, LinearMap, expanded
from ..codegen.triton_nest import MOST_TURNS, Nest
from .flat_program import FlatProgram, flat_program

LARGE = 200
"""Sources and results of a map from which a loop is used: with fewer, straight-line code compiles within a second."""


def nests_of(program: Program) -> tuple[Nest | None, Nest | None, Nest | None]:
    """Return the maps of A, B and C of a program as two levels; None for one that is to be straight-line code.

    The results of `FlatProgram.left` and `right` are its slabs, all blocks of C in row-major order its results. The
    coefficients of the level of the loop must be -1 and 1. Its sums share no parts: where those of the program do,
    they are rounded in another order.
    """
    flat = flat_program(program)
    rows, cols = flat.program.target.m, flat.program.target.n
    whole = tuple((i, j) for i in range(rows) for j in range(cols))
    blocks = (flat.maps.left_blocks, flat.maps.right_blocks, whole)
    left, right, merge = (_nest(program, side, some) for side, some in enumerate(blocks))
    return left, right, merge


def _nest(program: Program, side: int, blocks: tuple[Block, ...]) -> Nest | None:
    """Return the map of A, B or C (`side`) with a loop over the level of fewer products, the outer one if equal."""
    inner = dict(program.inner)
    if list(inner) != [ProductKind.FULL]:
        return None
    levels = flat_program(Program(program.target, program.ring, program.ops)), flat_program(inner[ProductKind.FULL])
    outer, below = levels
    halves = any(op.kind.half for level in levels for op in level.products)
    if halves or outer.rank * below.rank + len(blocks) < LARGE:
        return None
    (rows, cols), index = _grids(below.program)[side], {block: number for number, block in enumerate(blocks)}
    outside, inside = (_blocks(level, side) for level in levels)
    whole = [[index.get((i * rows + p, j * cols + q), -1) for p, q in inside] for i, j in outside]
    if any(-1 in line for line in whole):
        return None
    looped = min((level for level in levels if _signs(level, side)), key=lambda level: level.rank, default=None)
    if looped is None or (table := _signs(looped, side)) is None:
        return None
    if looped is outer:
        return Nest(table, _map(below, side), tuple(map(tuple, whole)), 1, below.rank)
    return Nest(table, _map(outer, side), tuple(zip(*whole, strict=True)), below.rank, 1)


def _map(level: FlatProgram, side: int) -> LinearMap:
    return (level.left, level.right, level.merge)[side]


def _blocks(level: FlatProgram, side: int) -> tuple[Block, ...]:
    """Return the blocks of an operand that a map reads, or of C that it writes, in order."""
    return (level.maps.left_blocks, level.maps.right_blocks, level.maps.stored)[side]


def _signs(level: FlatProgram, side: int) -> tuple[tuple[int, ...], ...] | None:
    """Return the coefficient of every block in every product; None if they are too many, or not -1, 0 or 1."""
    if level.rank > MOST_TURNS:
        return None
    linear, blocks = _map(level, side), len(_blocks(level, side))
    dense: list[list[Coefficient]] = [[0] * blocks for _ in range(level.rank)]
    for result in range(len(linear.results)):
        for source, coefficient in expanded(linear, result):
            product, block = (source, result) if side == 2 else (result, source)
            dense[product][block] = coefficient
    if any(value not in (-1, 0, 1) for row in dense for value in row):
        return None
    return tuple(tuple(int(value) for value in row) for row in dense)


def _grids(program: Program) -> tuple[Block, Block, Block]:
    m, k, n = program.target.shape
    return (m, k), (k, n), (m, n)
