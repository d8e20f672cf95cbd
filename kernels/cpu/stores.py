"""Stores, the sums and products of a level in memory: all of them in slabs, or those of one product in buffers.

The methods of a level differ in the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...schemes_db.program import Coefficient, ProductKind
from ..arrays import Matrix
from ..codegen.maps import Block, LinearMap, expanded
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


class Slabs:
    """All left sums, all right sums and all products of a level of known sizes at once.

    A sum that equals a full block is a view of the operand. `forms` are those of every product, `maps` all generated
    code that the store runs.
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
        """Number of bytes that `batches` takes from the arena."""
        stacks = zip(self._cut.grids, self._counts, strict=True)
        return sum(grid.stack_bytes(count) for grid, count in stacks) + self._cut.spare_bytes

    def stages(self) -> list[Stage]:
        """Return the cost of one run, without seconds: the sums of A, those of B if computed separately, and C."""
        return [sums_stage(name, [bound]) for name, bound in zip(SUMS, self.maps, strict=True)]

    def batches(
        self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int, rights: Sequence[Matrix] | None = None
    ) -> Iterator[Batch]:
        """Yield the products to run, with their operands computed; merge them into `out` when resumed.

        With `rights`, precomputed right operands, B is not read. Memory is allocated before the first batch, here the
        only one.
        """
        cut = self._cut
        stacks = [grid.stack(count, arena.array) for grid, count in zip(cut.grids, self._counts, strict=True)]
        spare = cut.spare(arena.array)
        lefts = self._sums(0, a, stacks[0], spare, threads)
        if rights is None:
            rights = self._sums(1, b, stacks[1], spare, threads)
        result = cut.grids[2]
        yield Batch(range(len(self.forms)), lefts, rights, result.matrices(stacks[2]))
        self.maps[2].run(result.in_stack(stacks[2]), result.locate(out), spare, threads)

    def rights(self, b: Matrix, threads: int) -> tuple[list[Matrix], int]:
        """Compute the right operand of every product, in newly allocated memory, and return them with its bytes."""
        stack = self._cut.grids[1].stack(self._counts[1], empty_aligned)
        return self._sums(1, b, stack, self._cut.spare(empty_aligned), threads), stack.nbytes

    def _sums(self, side: int, matrix: Matrix, stack: Matrix, spare: Matrix, threads: int) -> list[Matrix]:
        """Return the operand of every product on one side: a matrix of the stack, or a view of a block."""
        cut, grid = self._cut, self._cut.grids[side]
        self.maps[side].run(grid.locate(matrix), grid.in_stack(stack), spare, threads, self._made[side])
        made = grid.matrices(stack)
        operands = {result: made[i] for result, i in self._made[side].items()}
        operands.update((result, grid.view(matrix, place)) for result, place in cut.plain[side].items())
        return [operands[result] for result in (cut.maps.left_of, cut.maps.right_of)[side]]


Terms = list[tuple[int, Coefficient]]


@dataclass(frozen=True)
class BlockSum:
    """A sum of blocks of an operand, or a product added to blocks of C: the code, and the blocks read and written."""

    kernel: BoundMap
    read: list[int]
    written: list[int] = field(default_factory=list)


class Buffers:
    """One left sum, one right sum and one product, which is added to C as soon as it is computed: a store as `Slabs`.

    It needs the memory of one block of A, of B and of C, and reads A, B and C many times: slower than `Slabs`,
    if those fit. Sums with equal coefficients share one kernel, whichever blocks they read.
    """

    def __init__(self, cut: Partition) -> None:
        self._cut = cut
        maps = cut.maps
        self.forms: list[Form] = [(op.kind, 1) for op in maps.products]
        self._kernels: dict[tuple[int, LinearMap], BoundMap] = {}
        self._sides = tuple(
            [self._operand(side, expanded(linear, i), cut.plain[side].get(i)) for i in range(len(linear.results))]
            for side, linear in enumerate((maps.left, maps.right))
        )
        self._feeds = [self._feed(*terms) for terms in _feeds(maps.merge, cut.wanted, len(maps.products))]

    def _operand(self, side: int, terms: Terms, place: Block | None) -> Block | BlockSum:
        if place is not None:
            return place
        terms = sorted(terms, key=lambda term: (-term[1], term[0]))
        linear = LinearMap(len(terms), (), (tuple((coefficient, i) for i, (_, coefficient) in enumerate(terms)),))
        return BlockSum(self._kernel(side, linear), [block for block, _ in terms])

    def _feed(self, first: Terms, again: Terms) -> BlockSum | None:
        results = [((1, i), (coefficient, 0)) for i, (_, coefficient) in enumerate(again, start=1)]
        results += [((coefficient, 0),) for _, coefficient in first]  # type: ignore[misc]
        if not results:
            return None
        linear = LinearMap(1 + len(again), (), tuple(results))
        old = [block for block, _ in again]
        return BlockSum(self._kernel(2, linear), old, old + [block for block, _ in first])

    def _kernel(self, role: int, linear: LinearMap) -> BoundMap:
        if (role, linear) not in self._kernels:
            self._kernels[role, linear] = self._cut.grids[role].bound(linear)
        return self._kernels[role, linear]

    @property
    def maps(self) -> Sequence[BoundMap]:
        return tuple(self._kernels.values())

    @property
    def workspace(self) -> int:
        return sum(grid.stack_bytes(1) for grid in self._cut.grids) + self._cut.spare_bytes

    def stages(self) -> list[Stage]:
        maps = self._cut.maps
        sums = (
            [side[i] for i in places] for side, places in zip(self._sides, (maps.left_of, maps.right_of), strict=True)
        )
        steps: list[Sequence[Block | BlockSum | None]] = [*sums, self._feeds]
        return [
            sums_stage(name, (x.kernel for x in some if isinstance(x, BlockSum)))
            for name, some in zip(SUMS, steps, strict=True)
        ]

    def batches(
        self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int, rights: Sequence[Matrix] | None = None
    ) -> Iterator[Batch]:
        """See `Slabs.batches`: one batch per product."""
        cut = self._cut
        stacks = [(grid, grid.stack(1, arena.array)) for grid in cut.grids]
        spare = cut.spare(arena.array)
        buffers = [grid.in_stack(stack) for grid, stack in stacks]
        matrices = [grid.matrices(stack)[0] for grid, stack in stacks]
        sources = [grid.locate(matrix) for grid, matrix in zip(cut.grids, (a, b, out), strict=True)]

        def operand(side: int, result: int) -> Matrix:
            part = self._sides[side][result]
            if not isinstance(part, BlockSum):
                return cut.grids[side].view((a, b)[side], part)
            part.kernel.run(sources[side][part.read], buffers[side], spare, threads)
            return matrices[side]

        for r, feed in enumerate(self._feeds):
            left = operand(0, cut.maps.left_of[r])
            right = operand(1, cut.maps.right_of[r]) if rights is None else rights[r]
            yield Batch([r], [left], [right], [matrices[2]])
            if feed is not None:
                source = np.concatenate([buffers[2], sources[2][feed.read]])
                feed.kernel.run(source, sources[2][feed.written], spare, threads)


def _feeds(merge: LinearMap, wanted: list[int], products: int) -> list[tuple[Terms, Terms]]:
    """For every product, return the terms of C that it is the first to reach, and those that it adds to."""
    feeds: list[tuple[Terms, Terms]] = [([], []) for _ in range(products)]
    for block in wanted:
        for position, (product, coefficient) in enumerate(expanded(merge, block)):
            feeds[product][min(position, 1)].append((block, coefficient))
    for pair in feeds:
        for terms in pair:
            terms.sort(key=lambda term: (-term[1], term[0]))
    return feeds
