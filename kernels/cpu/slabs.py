"""Stores, the sums and products of a level in memory; `Slabs` computes all sums before the products.

The methods of a level differ in the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from ...schemes_db.program import ProductKind
from ..arrays import Matrix
from ..planning.strategy import Stage
from .mapping import BoundMap, sums_stage
from .partition import Partition
from .workspace import Arena, empty_aligned

Form = tuple[ProductKind, int]
"""The kind of a product, and its length in inner blocks."""

SUMS = ("sums of A", "sums of B", "blocks of C")
"""The stages of a level besides its products."""


@dataclass(frozen=True)
class Batch:
    """Products that may run in any order, by number, with their operands and result matrices."""

    products: Sequence[int]
    lefts: Sequence[Matrix]
    rights: Sequence[Matrix]
    results: Sequence[Matrix]


class LevelStore(Protocol):
    """The matrices of one level of known sizes: it computes the sums and merges the products."""

    @property
    def forms(self) -> Sequence[Form]:
        """The form of every product."""

    @property
    def maps(self) -> Sequence[BoundMap]:
        """All generated code that the store runs."""

    @property
    def workspace(self) -> int:
        """Number of bytes that `batches` takes from the arena."""

    def stages(self) -> list[Stage]:
        """Return the cost of one run, without seconds: the sums of A, those of B if computed separately, and C."""

    def batches(
        self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int, rights: Sequence[Matrix] | None = None
    ) -> Iterator[Batch]:
        """Yield the products to run, with their operands computed; merge them into `out` when resumed.

        With `rights`, precomputed right operands, B is not read. Memory is allocated before the first batch.
        """


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
        self.maps = tuple(grid.bound(linear, results) for grid, (linear, results) in zip(cut.grids, sides, strict=True))

    @property
    def workspace(self) -> int:
        stacks = zip(self._cut.grids, self._counts, strict=True)
        return sum(grid.stack_bytes(count) for grid, count in stacks) + self._cut.spare_bytes

    def stages(self) -> list[Stage]:
        return [sums_stage(name, [bound]) for name, bound in zip(SUMS, self.maps, strict=True)]

    def batches(
        self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int, rights: Sequence[Matrix] | None = None
    ) -> Iterator[Batch]:
        """See `Store.batches`: one batch of all products."""
        cut = self._cut
        stacks = [grid.stack(count, arena.array) for grid, count in zip(cut.grids, self._counts, strict=True)]
        spare = cut.spare(arena.array)
        lefts = self._sums(0, a, stacks[0], spare, threads)
        if rights is None:
            rights = self._sums(1, b, stacks[1], spare, threads)
        result = cut.grids[2]
        yield Batch(range(len(self.forms)), lefts, rights, result.matrices(stacks[2]))
        wanted = {i: i for i in cut.wanted}
        self.maps[2].run(result.in_stack(stacks[2]), result.locate(out), wanted, spare, threads)

    def rights(self, b: Matrix, threads: int) -> tuple[list[Matrix], int]:
        """Compute the right operand of every product, in newly allocated memory, and return them with its bytes."""
        stack = self._cut.grids[1].stack(self._counts[1], empty_aligned)
        return self._sums(1, b, stack, self._cut.spare(empty_aligned), threads), stack.nbytes

    def _sums(self, side: int, matrix: Matrix, stack: Matrix, spare: npt.NDArray[Any], threads: int) -> list[Matrix]:
        """Return the operand of every product on one side: a matrix of the stack, or a view of a block."""
        cut, grid = self._cut, self._cut.grids[side]
        self.maps[side].run(grid.locate(matrix), grid.in_stack(stack), self._made[side], spare, threads)
        made = grid.matrices(stack)
        operands = {result: made[i] for result, i in self._made[side].items()}
        operands.update((result, grid.view(matrix, place)) for result, place in cut.plain[side].items())
        return [operands[result] for result in (cut.maps.left_of, cut.maps.right_of)[side]]
