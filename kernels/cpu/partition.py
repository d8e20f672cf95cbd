"""The three matrices of one level of a program, divided into blocks; and the method of running the level."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.grids import Kind
from ...schemes_db.program import Program
from ..arrays import Matrix, Sizes
from ..codegen.maps import Block, LinearMap, ProgramMaps, maps_of, pieces
from ..dtypes import dtype_of
from ..identity import memoize_on_instance
from ..request import INT8
from .blas import NUMPY, Backend
from .mapping import Blocks, BoundMap, blocks_at, leading_dimension
from .workspace import aligned

Allocate = Callable[[tuple[int, ...], np.dtype[Any]], Matrix]
"""How memory is allocated: `Arena.array` or `empty_aligned`."""


@dataclass(frozen=True)
class CpuMethod:
    """The method by which levels are run.

    `tasks`: the products of a level are distributed to the threads, each computed by one of them alone;
    else one after the other, each by all threads. `loop`: the first level computes one product
    at a time, in small buffers, instead of all sums first. `blas` computes the products at the bottom.
    `grouped`: products with proportional coefficients in C form one longer product, and those at the bottom are
    distributed to the threads; for structured schemes.
    """

    tasks: bool = False
    loop: bool = False
    blas: Backend = NUMPY
    grouped: bool = False

    def below(self, program: Program) -> CpuMethod:
        """Return the method of the next level, which runs `program`."""
        if self.grouped:
            return CpuMethod() if program.target.is_general else self
        return CpuMethod(self.tasks, blas=self.blas)


@dataclass(frozen=True)
class ProgramBlocks:
    """The blocks of a program level, whatever their sizes: roles 0, 1 and 2 are A, B and C.

    `places` and `kinds` are those of the blocks that are read or written, by role; `plain` are the sums of A and of B
    that equal one full block: result -> block. `wanted` are the stored blocks of C that are not absent; the places
    `cleared` are not among them.
    """

    places: tuple[tuple[Block, ...], ...]
    kinds: tuple[tuple[Kind, ...], ...]
    plain: tuple[dict[int, Block], ...]
    wanted: list[int]
    cleared: list[Block]


@memoize_on_instance
def blocks_of(program: Program) -> ProgramBlocks:
    """Return the blocks of one level of a program."""
    target, maps = program.target, maps_of(program)
    places = (maps.left_blocks, maps.right_blocks, maps.stored)
    kinds = tuple(
        tuple(table[p][q] for p, q in some) for table, some in zip((target.a, target.b, target.c), places, strict=True)
    )
    plain = tuple(
        {result: places[side][i] for result, i in linear.copies.items() if kinds[side][i] is Kind.FULL}
        for side, linear in enumerate((maps.left, maps.right))
    )
    wanted = [i for i, kind in enumerate(kinds[2]) if kind is not Kind.ABSENT]
    stored = {maps.stored[i] for i in wanted}
    cleared = [(p, q) for p in range(target.m) for q in range(target.n) if (p, q) not in stored]
    return ProgramBlocks(places, kinds, plain, wanted, cleared)


@dataclass(frozen=True)
class Grid:
    """A, B or C of a level divided into blocks, as it is stored: a column-major matrix as its transpose.

    Sizes, `places` and `kinds` are those of the stored matrix: with `by_columns` they are transposed already. Stacks
    are of blocks of this shape, and are stored likewise. Matrices that are passed and returned are as in the product.
    """

    dtype: str
    by_columns: bool
    rows: int
    cols: int
    height: int
    width: int
    places: tuple[Block, ...]
    kinds: tuple[Kind, ...]

    @classmethod
    def of(cls, dtype: str, by_columns: bool, size: Block, block: Block, blocks: ProgramBlocks, role: int) -> Grid:
        """Return the grid of a role of a program, for a matrix and blocks of these sizes as in the product."""
        places, kinds = blocks.places[role], blocks.kinds[role]
        if by_columns:
            size, block = size[::-1], block[::-1]
            places, kinds = tuple((q, p) for p, q in places), tuple(kind.mirrored for kind in kinds)
        return cls(dtype, by_columns, *size, *block, places, kinds)

    @property
    def storage(self) -> np.dtype[Any]:
        """The dtype that stores an element."""
        return dtype_of(self.dtype).numpy

    @cached_property
    def shapes(self) -> npt.NDArray[np.int64]:
        """Kind, rows and columns of every block, as far as it is inside the matrix."""
        table = np.empty((len(self.places), 3), np.int64)
        for i, ((p, q), kind) in enumerate(zip(self.places, self.kinds, strict=True)):
            rows = min(max(self.rows - p * self.height, 0), self.height)
            cols = min(max(self.cols - q * self.width, 0), self.width)
            table[i] = (kind, 0, 0) if kind is Kind.ABSENT else (kind, rows, cols)
        return table

    def bound(self, linear: LinearMap, results: Iterable[int] | None = None) -> BoundMap:
        """Return the code of a map, or of some of its results, on such blocks."""
        return BoundMap(pieces(linear, results), self.dtype, self.height, self.width)

    def stored(self, matrix: Matrix) -> Matrix:
        """Return a matrix in the orientation of the grid."""
        return matrix.T if self.by_columns else matrix

    def locate(self, matrix: Matrix) -> Blocks:
        """Return the blocks of a matrix."""
        stored = self.stored(matrix)
        stride, item = stored.strides[0], stored.itemsize
        addresses = [stored.ctypes.data + p * self.height * stride + q * self.width * item for p, q in self.places]
        return blocks_at(addresses, stride, self.shapes)

    def view(self, matrix: Matrix, place: Block) -> Matrix:
        """Return the full block at a place of the product as a view."""
        height, width = (self.width, self.height) if self.by_columns else (self.height, self.width)
        p, q = place
        return matrix[p * height : (p + 1) * height, q * width : (q + 1) * width]

    def _stack_shape(self, count: int) -> tuple[int, int, int]:
        return count, self.height, leading_dimension(self.width, self.storage.itemsize)

    def stack(self, count: int, allocate: Allocate) -> Matrix:
        """Allocate a stack of so many blocks, in storage order."""
        return allocate(self._stack_shape(count), self.storage)

    def stack_bytes(self, count: int) -> int:
        """Return the bytes that `stack` takes from an arena."""
        return aligned(math.prod(self._stack_shape(count)) * self.storage.itemsize)

    def in_stack(self, stack: Matrix) -> Blocks:
        """Return the blocks of a stack, all full."""
        count, height, _ = stack.shape
        addresses = stack.ctypes.data + np.arange(count, dtype=np.int64) * stack.strides[0]
        return blocks_at(addresses, stack.strides[1], (Kind.FULL, height, self.width))

    def matrices(self, stack: Matrix) -> list[Matrix]:
        """Return the matrices of a stack."""
        return [self.stored(matrix) for matrix in stack[:, :, : self.width]]


class Partition:
    """A program level bound to sizes, dtype and layouts: the grids of A, B and C (roles 0, 1 and 2).

    Products have the dtype of C: int32 where operands are int8. Blocks that extend over the edge are padded with zeros
    that are never stored.

    Raises:
        PlanError: a half block of the target would not be square.
    """

    def __init__(self, program: Program, sizes: Sizes, dtype: str, by_columns: tuple[bool, bool, bool]) -> None:
        if reason := size_reason(program, sizes):
            raise PlanError(reason)
        self.program, self.dtype = program, dtype
        self.sizes, self.by_columns = sizes, by_columns
        self.maps: ProgramMaps = maps_of(program)
        blocks = blocks_of(program)
        (m, k, n), (gm, gk, gn) = sizes, program.target.shape
        self.block: Sizes = -(-m // gm), -(-k // gk), -(-n // gn)
        bm, bk, bn = self.block
        shapes = (((m, k), (bm, bk)), ((k, n), (bk, bn)), ((m, n), (bm, bn)))
        dtypes = (dtype, dtype, "int32" if dtype == INT8 else dtype)
        self.grids = tuple(
            Grid.of(dtypes[role], transposed, *shapes[role], blocks, role) for role, transposed in enumerate(by_columns)
        )
        # Blocks of A and of B that are not padded are used in place.
        whole = ((m, k) == (bm * gm, bk * gk), (k, n) == (bk * gk, bn * gn))
        self.plain = tuple(blocks.plain[side] if whole[side] else {} for side in range(2))
        self.wanted, self._cleared = blocks.wanted, blocks.cleared
        self._spare_row = aligned(max(grid.width * grid.storage.itemsize for grid in self.grids))

    def spare(self, allocate: Allocate) -> Matrix:
        """Allocate a row of zeros and a row that nobody reads."""
        rows = allocate((2, self._spare_row), np.dtype(np.uint8))
        rows[0] = 0
        return rows

    @property
    def spare_bytes(self) -> int:
        """The bytes that `spare` takes from an arena."""
        return 2 * self._spare_row

    def clear(self, out: Matrix) -> None:
        """Zero the unwanted blocks of C and those that no product contributes to."""
        bm, _, bn = self.block
        for p, q in self._cleared:
            out[p * bm : (p + 1) * bm, q * bn : (q + 1) * bn] = 0


def size_reason(program: Program, sizes: Sizes) -> str | None:
    """Return the reason why matrices of these sizes cannot be divided by the program's target, or None."""
    target = program.target
    if target.is_general:
        return None
    m, k, n = sizes
    sides = (("A", target.a, m, k), ("B", target.b, k, n), ("C", target.c, m, n))
    for label, kinds, rows, cols in sides:
        if any(kind.half for line in kinds for kind in line) and rows * len(kinds[0]) != cols * len(kinds):
            shape = "square" if len(kinds) == len(kinds[0]) else f"in the ratio {len(kinds)}:{len(kinds[0])}"
            return f"{label} of {target} has triangular blocks and must be {shape}, but it is {rows} x {cols}"
    return None
