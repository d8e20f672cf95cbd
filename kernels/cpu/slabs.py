"""The store that computes all sums of a level before its products, each stored in a slab."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy.typing as npt

from ..arrays import Matrix
from ..planning.strategy import Stage
from .blocks import stack_blocks
from .mapping import BoundMap
from .partition import Partition, spare_rows
from .store import Batch, Form
from .workspace import Arena, aligned, empty_aligned


class Slabs:
    """All left sums, all right sums and all products of a level at once; a `Store`.

    A sum that equals a full block is a view of the operand.
    """

    def __init__(self, cut: Partition) -> None:
        self._cut = cut
        maps = cut.maps
        self.forms: list[Form] = [(op.kind, 1) for op in maps.products]
        made = [
            [i for i in range(len(side.results)) if i not in cut.plain[s]]
            for s, side in enumerate((maps.left, maps.right))
        ]
        self._made = tuple({result: i for i, result in enumerate(results)} for results in made)
        self.maps = tuple(
            BoundMap.of(linear, results, cut.dtype, grid.height, grid.width)
            for linear, results, grid in zip(
                (maps.left, maps.right, maps.merge), (*made, cut.wanted), cut.grids, strict=True
            )
        )
        counts = (len(made[0]), len(made[1]), len(maps.products))
        self._shapes = tuple(cut.stack_shape(role, count) for role, count in enumerate(counts))

    @property
    def workspace(self) -> int:
        item = self._cut.storage.itemsize
        stacks = sum(aligned(count * height * lead * item) for count, height, lead in self._shapes)
        return stacks + 2 * aligned(self._cut.spare_width * item)

    def stages(self) -> list[Stage]:
        names = ("sums of A", "sums of B", "blocks of C")
        return [Stage(name, bound.flops, bound.traffic) for name, bound in zip(names, self.maps, strict=True)]

    def batches(
        self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int, rights: Sequence[Matrix] | None = None
    ) -> Iterator[Batch]:
        """See `Store.batches`: one batch of all products."""
        cut = self._cut
        stacks = [arena.array(shape, cut.storage) for shape in self._shapes]
        spare = spare_rows(cut, [arena.array((cut.spare_width,), cut.storage) for _ in range(2)])
        lefts = self._sums(0, a, stacks[0], spare, threads)
        if rights is None:
            rights = self._sums(1, b, stacks[1], spare, threads)
        yield Batch(range(len(self.forms)), lefts, rights, cut.matrices(2, stacks[2]))
        target = cut.grids[2].locate(cut.stored(2, out), cut.tables[2])
        wanted = {i: i for i in cut.wanted}
        self.maps[2].run(stack_blocks(stacks[2], cut.grids[2].width), target, wanted, spare, threads)

    def rights(self, b: Matrix, threads: int) -> tuple[list[Matrix], int]:
        """Compute the right operand of every product, in newly allocated memory, and return them with its bytes."""
        cut = self._cut
        stack = empty_aligned(self._shapes[1], cut.storage)
        spare = spare_rows(cut, [empty_aligned((cut.spare_width,), cut.storage) for _ in range(2)])
        return self._sums(1, b, stack, spare, threads), stack.nbytes

    def _sums(self, side: int, matrix: Matrix, stack: Matrix, spare: npt.NDArray[Any], threads: int) -> list[Matrix]:
        """Return the operand of every product on one side: a matrix of the stack, or a view of a block."""
        cut = self._cut
        source = cut.grids[side].locate(cut.stored(side, matrix), cut.tables[side])
        target = stack_blocks(stack, cut.grids[side].width)
        self.maps[side].run(source, target, self._made[side], spare, threads)
        made = cut.matrices(side, stack)
        operands = {result: made[i] for result, i in self._made[side].items()}
        operands.update((result, cut.view(side, matrix, place)) for result, place in cut.plain[side].items())
        return [operands[result] for result in (cut.maps.left_of, cut.maps.right_of)[side]]
