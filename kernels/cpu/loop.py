"""One level of a program worked product by product: one left sum, one right sum, one product at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from ...schemes_db.program import Coefficient, ProductKind, Program
from ..codegen.maps import LinearMap
from ..planning.strategy import Stage
from .blocks import Blocks, stack_blocks
from .executor import Core
from .leaf import Leaf
from .mapping import BoundMap
from .partition import Partition, Sizes, Way, spare_rows
from .workspace import Arena, aligned

Matrix = npt.NDArray[Any]
Terms = list[tuple[int, Coefficient]]


class Loop:
    """A program level that adds each product into C as soon as it is there; a `Core`.

    It needs the memory of one block of A, of B and of C, and reads A, B and C many times: slower
    than a `Level` that fits. Equal sums of different products share one kernel, whatever blocks
    they are of.

    Raises:
        PlanError: the sizes do not suit the target's half blocks.
    """

    def __init__(
        self,
        program: Program,
        sizes: Sizes,
        dtype: str,
        by_columns: tuple[bool, bool, bool],
        way: Way,
        below: Callable[..., Any],
    ) -> None:
        self.cut = cut = Partition(program, sizes, dtype, by_columns)
        maps = cut.maps
        self._sides = tuple([expanded(side, i) for i in range(len(side.results))] for side in (maps.left, maps.right))
        self._feeds = _feeds(maps.merge, cut.wanted, len(maps.products))
        self._buffers = tuple(cut.stack_shape(role, 1) for role in range(3))
        inner = dict(program.inner)
        self._cores: dict[ProductKind, Core] = {
            kind: below(inner[kind], cut.block, dtype, by_columns, way.below())
            if kind in inner
            else cut.leaf(kind, way)
            for kind in {op.kind for op in maps.products}
        }
        self._kernels: dict[tuple[int, LinearMap], BoundMap] = {}
        self._steps = [self._step(r) for r in range(len(maps.products))]

    def _step(self, r: int) -> tuple[Any, ...]:
        """What product r takes: for A and B a place or (kernel, blocks), for C (kernel, old blocks, all blocks)."""
        cut, maps = self.cut, self.cut.maps
        parts: list[Any] = []
        for side, result in ((0, maps.left_of[r]), (1, maps.right_of[r])):
            if result in cut.plain[side]:
                parts.append(cut.plain[side][result])
                continue
            terms = sorted(self._sides[side][result], key=lambda term: (-term[1], term[0]))
            linear = LinearMap(len(terms), (), (tuple((coefficient, i) for i, (_, coefficient) in enumerate(terms)),))
            parts.append((self._kernel(side, linear), [block for block, _ in terms]))
        first, again = self._feeds[r]
        results = [((1, i), (coefficient, 0)) for i, (_, coefficient) in enumerate(again, start=1)]
        results += [((coefficient, 0),) for _, coefficient in first]  # type: ignore[misc]
        linear = LinearMap(1 + len(again), (), tuple(results))
        old = [block for block, _ in again]
        parts.append((self._kernel(2, linear), old, old + [block for block, _ in first]) if results else None)
        return tuple(parts)

    def _kernel(self, role: int, linear: LinearMap) -> BoundMap:
        grid = self.cut.grids[role]
        key = role, linear
        if key not in self._kernels:
            results = range(len(linear.results))
            self._kernels[key] = BoundMap.of(linear, results, self.cut.dtype, grid.height, grid.width)
        return self._kernels[key]

    def workspace(self, threads: int) -> int:
        """See `Core.workspace`."""
        item = self.cut.storage.itemsize
        own = sum(aligned(height * lead * item) for _, height, lead in self._buffers)
        own += 2 * aligned(self.cut.spare_width * item)
        return own + max(core.workspace(threads) for core in self._cores.values())

    def compile(self) -> None:
        """Have all code at hand, that of inner levels included."""
        for bound in self._kernels.values():
            bound.compile()
        for core in self._cores.values():
            if not isinstance(core, Leaf):
                core.compile()  # type: ignore[attr-defined]

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1) -> None:
        """See `Core.run`."""
        cut = self.cut
        stacks = [arena.array(shape, cut.storage) for shape in self._buffers]
        spare = spare_rows(cut, [arena.array((cut.spare_width,), cut.storage) for _ in range(2)])
        buffers = [stack_blocks(stack, grid.width) for stack, grid in zip(stacks, cut.grids, strict=True)]
        matrices = [cut.matrices(role, stack)[0] for role, stack in enumerate(stacks)]
        sources: list[Blocks] = [
            cut.grids[role].locate(cut.stored(role, matrix), cut.tables[role])
            for role, matrix in enumerate((a, b, out))
        ]
        for r, (left, right, merge) in enumerate(self._steps):
            operands = []
            for side, (part, matrix) in enumerate(((left, a), (right, b))):
                if isinstance(part[0], BoundMap):
                    kernel, chosen = part
                    kernel.run(sources[side].chosen(chosen), buffers[side], {0: 0}, spare, threads)
                    operands.append(matrices[side])
                else:
                    operands.append(cut.view(side, matrix, part))
            self._cores[cut.maps.products[r].kind].run(operands[0], operands[1], matrices[2], arena.rest(), threads)
            if merge is not None:
                kernel, old, all_blocks = merge
                source = buffers[2].joined([0], sources[2], old)
                places = {i: i for i in range(len(all_blocks))}
                kernel.run(source, sources[2].chosen(all_blocks), places, spare, threads)
        cut.clear(out)

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        """What `times` runs of this level cost, without seconds."""
        totals = [[0, 0], [0, 0], [0, 0]]
        for step in self._steps:
            for role, part in enumerate(step):
                if part is not None and isinstance(part[0], BoundMap):
                    totals[role][0] += times * part[0].flops
                    totals[role][1] += times * part[0].traffic
        sums = [
            Stage(name, flops, moved)
            for name, (flops, moved) in zip(("sums of A", "sums of B", "blocks of C"), totals, strict=True)
        ]
        products: list[Stage] = []
        kinds = [op.kind for op in self.cut.maps.products]
        for kind, core in sorted(self._cores.items()):
            count = times * kinds.count(kind)
            leaf = isinstance(core, Leaf)
            products += [self.cut.leaves(kind, count)] if leaf else core.stages(count, prepared)  # type: ignore[attr-defined]
        return [*sums[:2], *products, sums[2]]


def expanded(linear: LinearMap, result: int) -> Terms:
    """A result written out in the sources, without the sums in between."""
    values: list[dict[int, Coefficient]] = [{i: 1} for i in range(linear.sources)]

    def total(terms: tuple[tuple[Coefficient, int], ...]) -> dict[int, Coefficient]:
        sums: dict[int, Coefficient] = {}
        for coefficient, src in terms:
            for source, inner in values[src].items():
                sums[source] = sums.get(source, 0) + coefficient * inner
        return {source: value for source, value in sums.items() if value}

    for terms in linear.lins:
        values.append(total(terms))
    return sorted(total(linear.results[result]).items())


def _feeds(merge: LinearMap, wanted: list[int], products: int) -> list[tuple[Terms, Terms]]:
    """For every product the blocks of C that it is the first to reach, and those that hold something already."""
    feeds: list[tuple[Terms, Terms]] = [([], []) for _ in range(products)]
    for block in wanted:
        for position, (product, coefficient) in enumerate(expanded(merge, block)):
            feeds[product][min(position, 1)].append((block, coefficient))
    for pair in feeds:
        for terms in pair:
            terms.sort(key=lambda term: (-term[1], term[0]))
    return feeds
