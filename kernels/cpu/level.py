"""One level of a program on matrices of known sizes: all sums, then all products, then all blocks of C."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.grids import Kind
from ...schemes_db.program import ProductKind, Program
from ..codegen.maps import ProgramMaps, maps_of
from ..executor import Core
from ..request import Layout, Request
from ..strategy import Stage
from ..workspace import Arena, aligned
from .blocks import Grid, leading_dimension, stack_blocks
from .leaf import Leaf, worked_fraction
from .mapping import BoundMap
from .threads import thread_count

Matrix = npt.NDArray[Any]
Sizes = tuple[int, int, int]


class Level:
    """A program level bound to sizes, dtype and layouts; a `Core`.

    Every left and right sum is made once and kept (the "batch" way), except one that is a block as
    it stands: that is a view. Blocks that reach over the edge are padded with zeros that are never
    stored. A matrix stored by columns is worked as its transpose, and its sums and products are
    stored in the same way.

    Raises:
        PlanError: the sizes do not suit the target's half blocks.
    """

    def __init__(self, program: Program, sizes: Sizes, dtype: str, by_columns: tuple[bool, bool, bool]) -> None:
        target = program.target
        if reason := size_reason(program, sizes):
            raise PlanError(reason)
        self.dtype = np.dtype(dtype)
        self.sizes, self.by_columns = sizes, by_columns
        m, k, n = sizes
        bm, bk, bn = (-(-size // parts) for size, parts in zip(sizes, target.shape, strict=True))
        self.block: Sizes = (bm, bk, bn)
        self.maps: ProgramMaps = maps_of(program)
        maps = self.maps
        self._plain = (
            self._views(maps, 0, (m, k) == (bm * target.m, bk * target.k), maps.left_blocks, target.a),
            self._views(maps, 1, (k, n) == (bk * target.k, bn * target.n), maps.right_blocks, target.b),
        )
        shapes = ((bm, bk), (bk, bn), (bm, bn))
        totals = ((m, k), (k, n), (m, n))
        places = (maps.left_blocks, maps.right_blocks, maps.stored)
        self._grids = tuple(
            Grid.of(total, shape, place, tuple(kinds[p][q] for p, q in place), transposed)
            for total, shape, place, kinds, transposed in zip(
                totals, shapes, places, (target.a, target.b, target.c), by_columns, strict=True
            )
        )
        self._tables = tuple(grid.shapes() for grid in self._grids)
        made = [
            [i for i in range(len(side.results)) if i not in self._plain[s]]
            for s, side in enumerate((maps.left, maps.right))
        ]
        wanted = [i for i, (p, q) in enumerate(maps.stored) if target.c[p][q] is not Kind.ABSENT]
        self._made = tuple({result: i for i, result in enumerate(results)} for results in made)
        self._wanted = {i: i for i in wanted}
        self._bound = tuple(
            BoundMap.of(linear, results, dtype, grid.height, grid.width)
            for linear, results, grid in zip(
                (maps.left, maps.right, maps.merge), (*made, wanted), self._grids, strict=True
            )
        )
        stored = {maps.stored[i] for i in wanted}
        self._cleared = [(p, q) for p in range(target.m) for q in range(target.n) if (p, q) not in stored]
        counts = (len(made[0]), len(made[1]), len(maps.products))
        self._stacks = tuple(
            (count, grid.height, leading_dimension(grid.width, self.dtype.itemsize))
            for count, grid in zip(counts, self._grids, strict=True)
        )
        self._spare = max(grid.width for grid in self._grids)
        inner = dict(program.inner)
        self._cores: dict[ProductKind, Core] = {
            kind: Level(inner[kind], self.block, dtype, by_columns) if kind in inner else Leaf(kind)
            for kind in {op.kind for op in maps.products}
        }

    @staticmethod
    def _views(
        maps: ProgramMaps,
        side: int,
        exact: bool,
        blocks: tuple[tuple[int, int], ...],
        kinds: tuple[tuple[Kind, ...], ...],
    ) -> dict[int, tuple[int, int]]:
        """The sums of one side that are a full block as it stands: result -> block."""
        if not exact:
            return {}
        plain = maps.plain((maps.left, maps.right)[side])
        return {
            result: blocks[source]
            for result, source in plain.items()
            if kinds[blocks[source][0]][blocks[source][1]] is Kind.FULL
        }

    @property
    def own_workspace(self) -> int:
        """Bytes for the sums, the products and the spare rows of this level."""
        item = self.dtype.itemsize
        stacks = sum(aligned(count * height * lead * item) for count, height, lead in self._stacks)
        return stacks + 2 * aligned(self._spare * item)

    @property
    def workspace(self) -> int:
        return self.own_workspace + max(core.workspace for core in self._cores.values())

    def compile(self) -> None:
        """Have all code at hand, that of inner levels included."""
        for bound in self._bound:
            bound.compile()
        for core in self._cores.values():
            if isinstance(core, Level):
                core.compile()

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena) -> None:
        """out = a b for matrices of this level's sizes and layouts. Parts that are not wanted are zeroed."""
        threads = thread_count()
        stacks = [arena.array(shape, self.dtype) for shape in self._stacks]
        zeros, trash = (arena.array((self._spare,), self.dtype) for _ in range(2))
        zeros[...] = 0
        spare = np.array([zeros.ctypes.data, trash.ctypes.data], np.int64)
        operands = []
        for side, matrix in enumerate((a, b)):
            stored = matrix.T if self.by_columns[side] else matrix
            source = self._grids[side].locate(stored, self._tables[side])
            target = stack_blocks(stacks[side], self._grids[side].width)
            self._bound[side].run(source, target, self._made[side], spare, threads)
            operands.append(self._operands(side, matrix, stacks[side]))
        products = self._matrices(2, stacks[2])
        for r, op in enumerate(self.maps.products):
            left, right = operands[0][self.maps.left_of[r]], operands[1][self.maps.right_of[r]]
            self._cores[op.kind].run(left, right, products[r], arena.rest())
        stored = out.T if self.by_columns[2] else out
        target = self._grids[2].locate(stored, self._tables[2])
        self._bound[2].run(stack_blocks(stacks[2], self._grids[2].width), target, self._wanted, spare, threads)
        bm, _, bn = self.block
        for p, q in self._cleared:
            out[p * bm : (p + 1) * bm, q * bn : (q + 1) * bn] = 0

    def _matrices(self, role: int, stack: Matrix) -> list[Matrix]:
        """The matrices of a stack, as they are to be multiplied."""
        whole = stack[:, :, : self._grids[role].width]
        return [matrix.T if self.by_columns[role] else matrix for matrix in whole]

    def _operands(self, side: int, matrix: Matrix, stack: Matrix) -> dict[int, Matrix]:
        """For every sum of a side the matrix that holds it: one of the stack, or a block of the operand."""
        made = self._matrices(side, stack)
        operands = {result: made[i] for result, i in self._made[side].items()}
        height, width = self.block[side], self.block[side + 1]
        for result, (p, q) in self._plain[side].items():
            operands[result] = matrix[p * height : (p + 1) * height, q * width : (q + 1) * width]
        return operands

    def stages(self, times: int = 1) -> list[Stage]:
        """What `times` runs of this level cost, without seconds."""
        names = ("sums of A", "sums of B", "blocks of C")
        maps = [
            Stage(name, times * bound.flops, times * bound.traffic)
            for name, bound in zip(names, self._bound, strict=True)
        ]
        products: list[Stage] = []
        bm, bk, bn = self.block
        kinds = [op.kind for op in self.maps.products]
        for kind, core in sorted(self._cores.items()):
            count = times * kinds.count(kind)
            if isinstance(core, Level):
                products += core.stages(count)
            else:
                flops = int(2 * bm * bk * bn * worked_fraction(kind, bn if kind.side == "right" else bm))
                size = (bm * bk + bk * bn + bm * bn) * self.dtype.itemsize
                name = f"{count} {kind.value} products {bm}x{bk}x{bn}"
                products.append(Stage(name, count * flops, count * size, product=self.block))
        return [*maps[:2], *products, maps[2]]


def size_reason(program: Program, sizes: Sizes) -> str | None:
    """Why matrices of these sizes cannot be cut by the program's target, or None."""
    target = program.target
    m, k, n = sizes
    sides = (("A", target.a, m, k), ("B", target.b, k, n), ("C", target.c, m, n))
    for label, kinds, rows, cols in sides:
        if any(kind.half for line in kinds for kind in line) and rows * len(kinds[0]) != cols * len(kinds):
            shape = "square" if len(kinds) == len(kinds[0]) else f"in the ratio {len(kinds)}:{len(kinds[0])}"
            return f"{label} of {target} has triangular blocks and must be {shape}, but it is {rows} x {cols}"
    return None


def core_of(program: Program, request: Request) -> Level:
    """The program on one matrix of a request; a scattered matrix has been copied by rows."""
    by_columns = tuple(layout is Layout.COLUMNS for layout in request.layouts)
    return Level(program, request.shape, request.dtype, by_columns)  # type: ignore[arg-type]
