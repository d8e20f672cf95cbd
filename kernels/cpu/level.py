"""One level of a program on matrices of known sizes: all sums, then all products, then all blocks of C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from ...schemes_db.program import ProductKind, Program
from ..planning.strategy import Stage
from ..request import Layout, Request
from .blocks import stack_blocks
from .leaf import Leaf
from .loop import Loop
from .mapping import BoundMap
from .partition import Partition, Sizes, Way, spare_rows
from .threads import one_thread_each, over_tasks
from .workspace import Arena, aligned, empty_aligned

Matrix = npt.NDArray[Any]


@dataclass(frozen=True)
class Right:
    """The right sums of a level, made ahead for a B that stays: by result, and those of inner levels by product."""

    operands: dict[int, Matrix]
    inner: tuple[Right | None, ...]
    nbytes: int


class Level:
    """A program level that makes every left and right sum once and keeps it; a `Core`.

    A sum that is a block as it stands is a view. `way.tasks` decides who works the products.

    Raises:
        PlanError: the sizes do not suit the target's half blocks.
    """

    def __init__(
        self,
        program: Program,
        sizes: Sizes,
        dtype: str,
        by_columns: tuple[bool, bool, bool],
        way: Way | None = None,
    ) -> None:
        self.way = Way() if way is None else way
        self.cut = cut = Partition(program, sizes, dtype, by_columns)
        maps = cut.maps
        made = [
            [i for i in range(len(side.results)) if i not in cut.plain[s]]
            for s, side in enumerate((maps.left, maps.right))
        ]
        self._made = tuple({result: i for i, result in enumerate(results)} for results in made)
        self._bound = tuple(
            BoundMap.of(linear, results, dtype, grid.height, grid.width)
            for linear, results, grid in zip(
                (maps.left, maps.right, maps.merge), (*made, cut.wanted), cut.grids, strict=True
            )
        )
        counts = (len(made[0]), len(made[1]), len(maps.products))
        self._stacks = tuple(cut.stack_shape(role, count) for role, count in enumerate(counts))
        inner = dict(program.inner)
        self._cores: dict[ProductKind, Level | Loop | Leaf] = {
            kind: core_of_level(inner[kind], cut.block, dtype, by_columns, self.way.below())
            if kind in inner
            else cut.leaf(kind, self.way)
            for kind in {op.kind for op in maps.products}
        }

    @property
    def own_workspace(self) -> int:
        """Bytes for the sums, the products and the spare rows of this level."""
        item = self.cut.storage.itemsize
        stacks = sum(aligned(count * height * lead * item) for count, height, lead in self._stacks)
        return stacks + 2 * aligned(self.cut.spare_width * item)

    def workspace(self, threads: int) -> int:
        """See `Core.workspace`."""
        together = max(core.workspace(threads) for core in self._cores.values())
        if self.way.tasks and threads > 1:
            together = max(together, threads * max(core.workspace(1) for core in self._cores.values()))
        return self.own_workspace + together

    def compile(self) -> None:
        """Have all code at hand, that of inner levels included."""
        for bound in self._bound:
            bound.compile()
        for core in self._cores.values():
            if not isinstance(core, Leaf):
                core.compile()

    def run(
        self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1, right: Right | None = None
    ) -> None:
        """See `Core.run`. `right` are sums made by `prepare`: then b is not read."""
        cut = self.cut
        stacks = [arena.array(shape, cut.storage) for shape in self._stacks]
        spare = spare_rows(cut, [arena.array((cut.spare_width,), cut.storage) for _ in range(2)])
        lefts = self._sums(0, a, stacks[0], spare, threads)
        rights = self._sums(1, b, stacks[1], spare, threads) if right is None else right.operands
        products = cut.matrices(2, stacks[2])
        self._multiply(lefts, rights, products, arena, threads, right)
        target = cut.grids[2].locate(cut.stored(2, out), cut.tables[2])
        wanted = {i: i for i in cut.wanted}
        self._bound[2].run(stack_blocks(stacks[2], cut.grids[2].width), target, wanted, spare, threads)
        cut.clear(out)

    def prepare(self, b: Matrix, threads: int = 1) -> Right:
        """The right sums of B and of all inner levels, in memory of their own."""
        cut = self.cut
        stack = empty_aligned(self._stacks[1], cut.storage)
        spare = spare_rows(cut, [empty_aligned((cut.spare_width,), cut.storage) for _ in range(2)])
        operands = self._sums(1, b, stack, spare, threads)
        inner: list[Right | None] = []
        for r, op in enumerate(cut.maps.products):
            core = self._cores[op.kind]
            below = core.prepare(operands[cut.maps.right_of[r]], threads) if isinstance(core, Level) else None
            inner.append(below)
        return Right(operands, tuple(inner), stack.nbytes + sum(below.nbytes for below in inner if below))

    def _multiply(
        self,
        lefts: dict[int, Matrix],
        rights: dict[int, Matrix],
        products: list[Matrix],
        arena: Arena,
        threads: int,
        right: Right | None,
    ) -> None:
        maps = self.cut.maps

        def work(r: int, memory: Arena, threads: int) -> None:
            core = self._cores[maps.products[r].kind]
            left, other = lefts[maps.left_of[r]], rights[maps.right_of[r]]
            below = right.inner[r] if right is not None else None
            if isinstance(core, Level):
                core.run(left, other, products[r], memory, threads, below)
            else:
                core.run(left, other, products[r], memory, threads)

        count = len(products)
        if not self.way.tasks or threads == 1:
            for r in range(count):
                work(r, arena.rest(), threads)
            return
        # What does not go round evenly is worked by all threads together, or most would wait for few.
        whole = count // threads * threads
        memories = arena.split(threads, max(core.workspace(1) for core in self._cores.values()))
        with one_thread_each():
            over_tasks(lambda r, worker: work(r, memories[worker].rest(), 1), whole, threads)
            for r in range(whole, count):
                work(r, arena.rest(), threads)

    def _sums(
        self, side: int, matrix: Matrix, stack: Matrix, spare: npt.NDArray[Any], threads: int
    ) -> dict[int, Matrix]:
        """For every sum of a side the matrix that holds it: one of the stack, or a block of the operand."""
        cut = self.cut
        source = cut.grids[side].locate(cut.stored(side, matrix), cut.tables[side])
        target = stack_blocks(stack, cut.grids[side].width)
        self._bound[side].run(source, target, self._made[side], spare, threads)
        made = cut.matrices(side, stack)
        operands = {result: made[i] for result, i in self._made[side].items()}
        operands.update((result, cut.view(side, matrix, place)) for result, place in cut.plain[side].items())
        return operands

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        """What `times` runs of this level cost, without seconds; `prepared`: B's sums are there already."""
        names = ("sums of A", "sums of B", "blocks of C")
        maps = [
            Stage(name, times * bound.flops, times * bound.traffic)
            for name, bound in zip(names, self._bound, strict=True)
        ]
        products: list[Stage] = []
        kinds = [op.kind for op in self.cut.maps.products]
        for kind, core in sorted(self._cores.items()):
            count = times * kinds.count(kind)
            if isinstance(core, Leaf):
                products.append(self.cut.leaves(kind, count))
            else:
                products += core.stages(count, prepared)
        return [maps[0], *([] if prepared else maps[1:2]), *products, maps[2]]


def core_of_level(
    program: Program, sizes: Sizes, dtype: str, by_columns: tuple[bool, bool, bool], way: Way
) -> Level | Loop:
    """The core of a program level and all below it, each level in its way."""
    if way.loops:
        return Loop(program, sizes, dtype, by_columns, way, core_of_level)
    return Level(program, sizes, dtype, by_columns, way)


def core_of(program: Program, request: Request, way: Way | None = None) -> Level | Loop:
    """The program on one matrix of a request; a scattered matrix has been copied by rows."""
    by_columns = tuple(layout is Layout.COLUMNS for layout in request.layouts)
    return core_of_level(program, request.shape, request.dtype, by_columns, way or Way())  # type: ignore[arg-type]
