"""The store that computes the sums of one product at a time, in one buffer per matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...schemes_db.program import Coefficient
from ..arrays import Matrix
from ..codegen.maps import LinearMap, expanded
from ..planning.strategy import Stage
from .blocks import Blocks, stack_blocks
from .mapping import BoundMap
from .partition import Partition, Place, spare_rows
from .store import Batch, Form
from .workspace import Arena, aligned

Terms = list[tuple[int, Coefficient]]


@dataclass(frozen=True)
class Step:
    """A sum of blocks of an operand, or a product added to blocks of C: the code, and the blocks read and written."""

    kernel: BoundMap
    read: list[int]
    written: list[int] = field(default_factory=list)


class Buffers:
    """One left sum, one right sum and one product, which is added to C as soon as it is computed; a `Store`.

    It needs the memory of one block of A, of B and of C, and reads A, B and C many times: slower than `Slabs`,
    if those fit. Sums with equal coefficients share one kernel, whichever blocks they read.
    """

    def __init__(self, cut: Partition) -> None:
        self._cut = cut
        maps = cut.maps
        self.forms: list[Form] = [(op.kind, 1) for op in maps.products]
        self._shapes = tuple(cut.stack_shape(role, 1) for role in range(3))
        self._kernels: dict[tuple[int, LinearMap], BoundMap] = {}
        self._sides = tuple(
            [self._operand(side, expanded(linear, i), cut.plain[side].get(i)) for i in range(len(linear.results))]
            for side, linear in enumerate((maps.left, maps.right))
        )
        self._feeds = [self._feed(*terms) for terms in _feeds(maps.merge, cut.wanted, len(maps.products))]

    def _operand(self, side: int, terms: Terms, place: Place | None) -> Place | Step:
        if place is not None:
            return place
        terms = sorted(terms, key=lambda term: (-term[1], term[0]))
        linear = LinearMap(len(terms), (), (tuple((coefficient, i) for i, (_, coefficient) in enumerate(terms)),))
        return Step(self._kernel(side, linear), [block for block, _ in terms])

    def _feed(self, first: Terms, again: Terms) -> Step | None:
        results = [((1, i), (coefficient, 0)) for i, (_, coefficient) in enumerate(again, start=1)]
        results += [((coefficient, 0),) for _, coefficient in first]  # type: ignore[misc]
        if not results:
            return None
        linear = LinearMap(1 + len(again), (), tuple(results))
        old = [block for block, _ in again]
        return Step(self._kernel(2, linear), old, old + [block for block, _ in first])

    def _kernel(self, role: int, linear: LinearMap) -> BoundMap:
        grid = self._cut.grids[role]
        key = role, linear
        if key not in self._kernels:
            results = range(len(linear.results))
            self._kernels[key] = BoundMap.of(linear, results, self._cut.dtype, grid.height, grid.width)
        return self._kernels[key]

    @property
    def maps(self) -> Sequence[BoundMap]:
        return tuple(self._kernels.values())

    @property
    def workspace(self) -> int:
        item = self._cut.storage.itemsize
        own = sum(aligned(height * lead * item) for _, height, lead in self._shapes)
        return own + 2 * aligned(self._cut.spare_width * item)

    def stages(self) -> list[Stage]:
        maps = self._cut.maps
        parts = (
            ("sums of A", [self._sides[0][i] for i in maps.left_of]),
            ("sums of B", [self._sides[1][i] for i in maps.right_of]),
            ("blocks of C", self._feeds),
        )
        return [_stage(name, [x.kernel for x in steps if isinstance(x, Step)]) for name, steps in parts]

    def batches(
        self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int, rights: Sequence[Matrix] | None = None
    ) -> Iterator[Batch]:
        """See `Store.batches`: one batch per product."""
        cut = self._cut
        stacks = [arena.array(shape, cut.storage) for shape in self._shapes]
        spare = spare_rows(cut, [arena.array((cut.spare_width,), cut.storage) for _ in range(2)])
        buffers = [stack_blocks(stack, grid.width) for stack, grid in zip(stacks, cut.grids, strict=True)]
        matrices = [cut.matrices(role, stack)[0] for role, stack in enumerate(stacks)]
        sources: list[Blocks] = [
            cut.grids[role].locate(cut.stored(role, matrix), cut.tables[role])
            for role, matrix in enumerate((a, b, out))
        ]

        def operand(side: int, result: int) -> Matrix:
            part = self._sides[side][result]
            if not isinstance(part, Step):
                return cut.view(side, (a, b)[side], part)
            part.kernel.run(sources[side].chosen(part.read), buffers[side], {0: 0}, spare, threads)
            return matrices[side]

        for r, feed in enumerate(self._feeds):
            left = operand(0, cut.maps.left_of[r])
            right = operand(1, cut.maps.right_of[r]) if rights is None else rights[r]
            yield Batch([r], [left], [right], [matrices[2]])
            if feed is not None:
                source = buffers[2].joined([0], sources[2], feed.read)
                places = {i: i for i in range(len(feed.written))}
                feed.kernel.run(source, sources[2].chosen(feed.written), places, spare, threads)


def _stage(name: str, kernels: Sequence[BoundMap]) -> Stage:
    return Stage(name, sum(kernel.flops for kernel in kernels), sum(kernel.traffic for kernel in kernels))


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
