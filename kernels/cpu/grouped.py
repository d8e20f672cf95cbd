"""One level of a structured scheme on a processor, with as few buffers as its bundles allow."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.grids import Kind
from ...schemes_db.program import ProductKind, Program, Terms
from ...schemes_db.symmetry import Triangle
from ..codegen.grouping import Bundled, Sums, bundled
from ..codegen.maps import Block, LinearMap, ProgramMaps, maps_of
from ..dtypes import dtype_of
from ..planning.strategy import Stage
from .blocks import Blocks, Grid, leading_dimension
from .executor import Core
from .halving import Halving
from .leaf import Leaf
from .level import Level
from .mapping import BoundMap
from .operands import OperandSums
from .partition import size_reason
from .strips import Sizes, Strips, cut, task_strips
from .threads import blas_is_limited, one_thread_each, over_tasks
from .workspace import Arena, aligned

Matrix = npt.NDArray[Any]
ByColumns = tuple[bool, bool, bool]

_LEAVES = (Leaf, Strips, Halving)
"""Cores without parallel parts of their own; as leaves they take nothing from the arena."""


class JoinedLevel:
    """A program level bound to sizes, dtype and layouts; a `Core`.

    A bundle is one GEMM. A bundle that is a term of one block alone stands in that block until it is
    merged, and the absent blocks of C hold others: what is left needs a buffer.

    Raises:
        PlanError: the sizes do not suit the target's half blocks.
    """

    def __init__(self, program: Program, sizes: Sizes, dtype: str, by_columns: ByColumns) -> None:
        if reason := size_reason(program, sizes):
            raise PlanError(reason)
        self.sizes, self.by_columns, self.dtype = sizes, by_columns, dtype
        self._storage = dtype_of(dtype).numpy
        self._target = target = program.target
        m, k, n = sizes
        bm, bk, bn = (-(-size // parts) for size, parts in zip(sizes, target.shape, strict=True))
        self.block: Sizes = (bm, bk, bn)
        self.joined: Bundled = bundled(maps_of(program))
        maps, bundles = self.joined.maps, self.joined.bundles
        lefts, rights = [x.left for x in bundles], [x.right for x in bundles]
        left = (maps.left_blocks, target.a, (m, k), (bm, bk), by_columns[0], dtype)
        right = (maps.right_blocks, target.b, (k, n), (bk, bn), by_columns[1], dtype)
        self._operands: tuple[OperandSums, ...]
        if target.shared:
            # B = A^T: the right sums, transposed, are sums of the same blocks, and all are made in one pass over A.
            linear, rights = _one_map(maps, rights)
            self._operands = (OperandSums(0, lefts + rights, linear, *left),)
        else:
            self._operands = (OperandSums(0, lefts, maps.left, *left), OperandSums(1, rights, maps.right, *right))
        self._place_products()
        kinds = tuple(target.c[p][q] for p, q in maps.stored)
        self._grid = Grid.of((m, n), (bm, bn), maps.stored, kinds, by_columns[2])
        self._table = self._grid.shapes()
        done = {self.joined.alone[i] for i in self._homes if self._homes[i] == self.joined.alone.get(i)}
        self._finished = sorted(done)
        merged = [i for i, block in enumerate(maps.stored) if block not in done]
        self._merge = BoundMap.of(self.joined.merge, merged, dtype, self._grid.height, self._grid.width)
        self._merged = {i: i for i in merged}
        self._absent = [(p, q) for p in range(target.m) for q in range(target.n) if target.c[p][q] is Kind.ABSENT]
        inner = dict(program.inner)
        self._cores: dict[tuple[ProductKind, int], Core] = {
            (kind, length): self._core(kind, length, inner.get(kind)) for kind, length in {x.form for x in bundles}
        }

    def _place_products(self) -> None:
        """Give bundles a block of C to stand in: one that is all of its block, or a term of no other, or an absent one.

        The others get a place in the buffer. Only whole blocks inside the matrix are taken.
        """
        (m, _, n), (bm, _, bn), target = self.sizes, self.block, self._target
        every = [(p, q) for p in range(target.m) for q in range(target.n)]
        free = {(p, q): True for p, q in every if (p + 1) * bm <= m and (q + 1) * bn <= n}
        homes: dict[int, Block] = {}
        for wishes in (self.joined.alone, self.joined.once):
            for i, block in wishes.items():
                if i not in homes and free.pop(block, False):
                    homes[i] = block
        absent = [block for block in free if target.c[block[0]][block[1]] is Kind.ABSENT]
        others = [i for i in range(len(self.joined.bundles)) if i not in homes]
        self._homes = homes | dict(zip(others, absent, strict=False))
        self._buffered = {i: t for t, i in enumerate(i for i in others if i not in self._homes)}

    def _core(self, kind: ProductKind, length: int, program: Program | None) -> Core:
        bm, bk, bn = self.block
        sizes = (bm, length * bk, bn)
        if program is not None:
            made = Level if program.target.is_general else JoinedLevel
            return made(program, sizes, self.dtype, self.by_columns)
        if not kind.half:
            return Leaf(dtype=self.dtype)
        triangle = Triangle(kind.side, kind.of_upper)
        if triangle.side == "out":
            return Halving(triangle, sizes, self.dtype, tidy=False)
        count = task_strips(bn if triangle.side == "right" else bm)
        return Strips(triangle, sizes, self.dtype, count, tidy=False)

    @property
    def _buffer_shape(self) -> tuple[int, int, int]:
        lead = leading_dimension(self._grid.width, self._storage.itemsize)
        return len(self._buffered), self._grid.height, lead

    @property
    def _spare(self) -> int:
        return max(self._grid.width, *(operand.width for operand in self._operands))

    def workspace(self, threads: int) -> int:
        """See `Core.workspace`."""
        item = self._storage.itemsize
        own = aligned(int(np.prod(self._buffer_shape)) * item) + 2 * aligned(self._spare * item)
        return own + sum(x.nbytes for x in self._operands) + max(x.workspace(threads) for x in self._cores.values())

    def compile(self) -> None:
        """Have all code at hand, that of inner levels included."""
        for bound in (*(bound for operand in self._operands for bound in operand.maps), self._merge):
            bound.compile()
        for core in self._cores.values():
            if isinstance(core, Level | JoinedLevel):
                core.compile()

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1) -> None:
        """out = a b for matrices of this level's sizes and layouts. Parts that are not wanted are zeroed."""
        buffer = arena.array(self._buffer_shape, self._storage)
        zeros, trash = (arena.array((self._spare,), self._storage) for _ in range(2))
        zeros[...] = 0
        spare = np.array([zeros.ctypes.data, trash.ctypes.data], np.int64)
        made = [
            operand.make(matrix, arena, spare, threads)
            for operand, matrix in zip(self._operands, (a, b), strict=False)  # of a shared A, B is not read
        ]
        count = len(self.joined.bundles)
        lefts, rights = made if len(made) == 2 else (made[0][:count], [x.T for x in made[0][count:]])
        products = [self._home(i, out, buffer) for i in range(len(lefts))]
        self._multiply(lefts, rights, products, arena, threads)
        stored = out.T if self.by_columns[2] else out
        self._merge.run(self._located(products), self._grid.locate(stored, self._table), self._merged, spare, threads)
        for p, q in self._absent:
            self._block_of(out, p, q)[...] = 0
        for p, q in self._finished:
            kind = self._target.c[p][q]
            if kind.half:
                cut(self._block_of(out, p, q), kind is Kind.UPPER)

    def _multiply(
        self, lefts: list[Matrix], rights: list[Matrix], products: list[Matrix], arena: Arena, threads: int
    ) -> None:
        """Work all bundles: the leaves as tasks of one thread each, longest first, the others one after the other."""
        forms = [bundle.form for bundle in self.joined.bundles]
        leaves = [i for i, form in enumerate(forms) if isinstance(self._cores[form], _LEAVES)]
        leaves.sort(key=lambda i: -self._flops(*forms[i]))

        def work(task: int, _: int) -> None:
            i = leaves[task]
            self._cores[forms[i]].run(lefts[i], rights[i], products[i], arena.rest(), 1)

        if threads > 1 and len(leaves) >= threads and blas_is_limited():
            with one_thread_each():
                over_tasks(work, len(leaves), threads)
        else:
            for task in range(len(leaves)):
                work(task, 0)
        for i in sorted(set(range(len(forms))) - set(leaves)):
            self._cores[forms[i]].run(lefts[i], rights[i], products[i], arena.rest(), threads)

    def _flops(self, kind: ProductKind, length: int) -> int:
        """Operations of one bundle that is a leaf."""
        core, (bm, bk, bn) = self._cores[kind, length], self.block
        if isinstance(core, Strips | Halving):
            return core.flops
        return 2 * dtype_of(self.dtype).parts ** 2 * bm * length * bk * bn

    def _block_of(self, out: Matrix, p: int, q: int) -> Matrix:
        bm, _, bn = self.block
        return out[p * bm : (p + 1) * bm, q * bn : (q + 1) * bn]

    def _home(self, i: int, out: Matrix, buffer: Matrix) -> Matrix:
        """Where bundle i stands until the merge, as it is to be multiplied."""
        if i in self._homes:
            return self._block_of(out, *self._homes[i])
        stored = buffer[self._buffered[i], :, : self._grid.width]
        return stored.T if self.by_columns[2] else stored

    def _located(self, products: list[Matrix]) -> Blocks:
        """The products as sources of the merge."""
        stored = [product.T if self.by_columns[2] else product for product in products]
        shapes = np.empty((len(stored), 3), np.int64)
        for i, bundle in enumerate(self.joined.bundles):
            kind = Kind.FULL
            if bundle.kind.side == "out":
                kind = Kind.UPPER if bundle.kind.of_upper else Kind.LOWER
            shapes[i] = (kind.mirrored if self.by_columns[2] else kind, self._grid.height, self._grid.width)
        addresses = np.array([x.ctypes.data for x in stored], np.int64)
        return Blocks(addresses, np.array([x.strides[0] for x in stored], np.int64), shapes)

    def stages(self, times: int = 1) -> list[Stage]:
        """What `times` runs cost, without seconds."""
        bounds = (*(operand.maps for operand in self._operands), (self._merge,))
        names = ("sums of A", "sums of B", "blocks of C") if len(bounds) == 3 else ("sums of A", "blocks of C")
        sums = [
            Stage(name, times * sum(x.flops for x in several), times * sum(x.traffic for x in several))
            for name, several in zip(names, bounds, strict=True)
        ]
        bm, bk, bn = self.block
        products: list[Stage] = []
        for (kind, length), core in sorted(self._cores.items()):
            count = times * sum(x.form == (kind, length) for x in self.joined.bundles)
            if isinstance(core, Level | JoinedLevel):
                products += core.stages(count)
                continue
            shape = (bm, length * bk, bn)
            flops = self._flops(kind, length)
            size = (bm * shape[1] + shape[1] * bn + bm * bn) * self._storage.itemsize
            name = f"{count} {kind.value} products {'x'.join(map(str, shape))}"
            products.append(Stage(name, count * flops, count * size, product=shape))
        return [*sums[:-1], *products, sums[-1]]


def _one_map(maps: ProgramMaps, rights: list[Sums]) -> tuple[LinearMap, list[Sums]]:
    """The left map with the right one's shared values added, over blocks of A, and the right sums in its values."""
    of_block = {block: i for i, block in enumerate(maps.left_blocks)}
    lins = list(maps.left.lins)
    known = {terms: maps.left.sources + i for i, terms in enumerate(lins)}
    value = {i: of_block[q, p] for i, (p, q) in enumerate(maps.right_blocks)}

    def renamed(terms: Terms) -> Terms:
        return tuple(sorted(((c, value[src]) for c, src in terms), key=lambda term: term[1]))

    for i, terms in enumerate(maps.right.lins):
        mine = renamed(terms)
        if mine not in known:
            known[mine] = maps.left.sources + len(lins)
            lins.append(mine)
        value[maps.right.sources + i] = known[mine]
    linear = LinearMap(maps.left.sources, tuple(lins), maps.left.results)
    return linear, [tuple(renamed(terms) for terms in parts) for parts in rights]
