"""The store that computes all sums of a level before its products, each stored in a slab."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy.typing as npt

from ..arrays import Matrix
from ..planning.strategy import Stage
from .blocks import stack_blocks
from .mapping import sums_stage
from .partition import Partition
from .store import SUMS, Batch, Form
from .workspace import Arena, empty_aligned


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
        self._counts = (len(made[0]), len(made[1]), len(maps.products))
        sides = zip((maps.left, maps.right, maps.merge), (*made, cut.wanted), strict=True)
        self.maps = tuple(cut.bound(role, linear, results) for role, (linear, results) in enumerate(sides))

    @property
    def workspace(self) -> int:
        return (
            sum(self._cut.stack_bytes(role, count) for role, count in enumerate(self._counts)) + self._cut.spare_bytes
        )

    def stages(self) -> list[Stage]:
        return [sums_stage(name, [bound]) for name, bound in zip(SUMS, self.maps, strict=True)]

    def batches(
        self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int, rights: Sequence[Matrix] | None = None
    ) -> Iterator[Batch]:
        """See `Store.batches`: one batch of all products."""
        cut = self._cut
        stacks = [cut.stack(role, count, arena.array) for role, count in enumerate(self._counts)]
        spare = cut.spare(arena.array)
        lefts = self._sums(0, a, stacks[0], spare, threads)
        if rights is None:
            rights = self._sums(1, b, stacks[1], spare, threads)
        yield Batch(range(len(self.forms)), lefts, rights, cut.matrices(2, stacks[2]))
        wanted = {i: i for i in cut.wanted}
        products = stack_blocks(stacks[2], cut.grids[2].width)
        self.maps[2].run(products, cut.locate(2, out), wanted, spare, threads)

    def rights(self, b: Matrix, threads: int) -> tuple[list[Matrix], int]:
        """Compute the right operand of every product, in newly allocated memory, and return them with its bytes."""
        stack = self._cut.stack(1, self._counts[1], empty_aligned)
        return self._sums(1, b, stack, self._cut.spare(empty_aligned), threads), stack.nbytes

    def _sums(self, side: int, matrix: Matrix, stack: Matrix, spare: npt.NDArray[Any], threads: int) -> list[Matrix]:
        """Return the operand of every product on one side: a matrix of the stack, or a view of a block."""
        cut = self._cut
        target = stack_blocks(stack, cut.grids[side].width)
        self.maps[side].run(cut.locate(side, matrix), target, self._made[side], spare, threads)
        made = cut.matrices(side, stack)
        operands = {result: made[i] for result, i in self._made[side].items()}
        operands.update((result, cut.view(side, matrix, place)) for result, place in cut.plain[side].items())
        return [operands[result] for result in (cut.maps.left_of, cut.maps.right_of)[side]]
