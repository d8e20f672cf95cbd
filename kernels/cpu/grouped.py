"""The store of structured schemes: groups products with proportional coefficients in C, with few buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...schemes_db.grids import Kind
from ...schemes_db.program import Terms
from ..arrays import Matrix
from ..codegen.grouping import GroupedProgram, Sums, group_products
from ..codegen.maps import Block, LinearMap, ProgramMaps
from ..planning.strategy import Stage
from .mapping import Blocks, BoundMap, blocks_at, leading_dimension, sums_stage
from .partition import Partition, blocks_of
from .stores import SUMS, Batch, Form
from .triangular_products import zero_outside_triangle
from .workspace import Arena, aligned


class OperandSums:
    """The sums of A (side 0) or of B (side 1) that the groups multiply, for one size, dtype and layout.

    Sums that are adjacent full blocks are views; equal ones are computed once. Half blocks
    are first copied and padded with zeros: rows that end at a diagonal are slow to add up,
    and a scheme uses each of them several times.
    """

    def __init__(self, cut: Partition, side: int, sums: list[Sums], linear: LinearMap) -> None:
        self._side, self._grid = side, cut.grids[side]
        self._block, self._size = cut.block[side : side + 2], cut.sizes[side : side + 2]
        blocks = blocks_of(cut.program)
        places, of_places = blocks.places[side], blocks.kinds[side]
        self._along_width = (side == 0) != self._grid.by_columns
        self._halves = [i for i, kind in enumerate(of_places) if kind.half]
        alike = LinearMap(len(self._halves), (), tuple(((1, i),) for i in range(len(self._halves))))
        self._copying = self._grid.bound(alike)
        self._views: dict[int, tuple[slice, slice]] = {}
        self._slot_of: dict[int, int] = {}
        slots: dict[Sums, int] = {}  # after those of the copies
        for i, parts in enumerate(sums):
            if span := self._span(parts, places, of_places):
                self._views[i] = span
            elif (source := _plain(parts)) in self._halves:
                self._slot_of[i] = self._halves.index(source)
            else:
                self._slot_of[i] = slots.setdefault(parts, len(self._halves) + len(slots))
        self._lengths = (*[1] * len(self._halves), *(len(parts) for parts in slots))
        results = tuple(terms for parts in slots for terms in parts)
        self._adding = self._grid.bound(LinearMap(linear.sources, linear.lins, results))

    def _span(self, parts: Sums, places: tuple[Block, ...], kinds: tuple[Kind, ...]) -> tuple[slice, slice] | None:
        """Return the range of the operand that the parts cover if they are whole adjacent full blocks, else None."""
        blocks: list[Block] = []
        for terms in parts:
            source = _plain((terms,))
            if source is None or source >= len(places) or kinds[source] is not Kind.FULL:
                return None
            blocks.append(places[source])
        first, last = blocks[0], blocks[-1]
        step = (0, 1) if self._side == 0 else (1, 0)
        if any(at != (first[0] + t * step[0], first[1] + t * step[1]) for t, at in enumerate(blocks)):
            return None
        height, width = self._block
        if (last[0] + 1) * height > self._size[0] or (last[1] + 1) * width > self._size[1]:
            return None
        rows = slice(first[0] * height, (last[0] + 1) * height)
        return rows, slice(first[1] * width, (last[1] + 1) * width)

    def _slot_shape(self, length: int) -> tuple[int, int]:
        """Return the shape of a slot in storage order."""
        height, width = self._grid.height, self._grid.width
        if self._along_width:
            return height, leading_dimension(length * width, self._grid.storage.itemsize)
        return length * height, leading_dimension(width, self._grid.storage.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes taken from the arena."""
        return sum(aligned(h * w * self._grid.storage.itemsize) for h, w in map(self._slot_shape, self._lengths))

    @property
    def maps(self) -> tuple[BoundMap, BoundMap]:
        """The copies of half blocks, and the sums."""
        return self._copying, self._adding

    def make(self, matrix: Matrix, arena: Arena, spare: Matrix, threads: int) -> list[Matrix]:
        """Compute all sums of an operand: for every group the matrix that it multiplies."""
        slots = [arena.array(self._slot_shape(length), self._grid.storage) for length in self._lengths]
        source = self._grid.locate(matrix)
        if self._halves:
            copies = self._blocks(slots[: len(self._halves)], self._lengths[: len(self._halves)])
            self._copying.run(source[self._halves], copies, spare, threads)
            source[self._halves] = copies
        made = self._blocks(slots[len(self._halves) :], self._lengths[len(self._halves) :])
        if len(made):
            self._adding.run(source, made, spare, threads)
        whole = [self._matrix(slot, length) for slot, length in zip(slots, self._lengths, strict=True)]
        count = len(self._views) + len(self._slot_of)
        return [matrix[self._views[i]] if i in self._views else whole[self._slot_of[i]] for i in range(count)]

    def _matrix(self, slot: Matrix, length: int) -> Matrix:
        """Return a slot in the orientation of the product."""
        width = self._grid.width
        return self._grid.stored(slot[:, : length * width] if self._along_width else slot[:, :width])

    def _blocks(self, slots: list[Matrix], lengths: tuple[int, ...]) -> Blocks:
        """Return every place of every slot, as a full block."""
        height, width = self._grid.height, self._grid.width
        addresses: list[int] = []
        strides: list[int] = []
        for slot, length in zip(slots, lengths, strict=True):
            step = width * slot.itemsize if self._along_width else height * slot.strides[0]
            addresses += [slot.ctypes.data + t * step for t in range(length)]
            strides += [slot.strides[0]] * length
        return blocks_at(addresses, strides, (Kind.FULL, height, width))


def _plain(parts: Sums) -> int | None:
    """Return the source of a single sum of one term with coefficient 1, else None."""
    if len(parts) == 1 and len(parts[0]) == 1 and parts[0][0][0] == 1:
        return parts[0][0][1]
    return None


class Groups:
    """All sums of a level, those of one group stored side by side for one longer product: a store as `Slabs`.

    A group is one GEMM. A group that is a term of only one block of C is computed in that block and merged
    there; ABSENT blocks of C store further groups; the remaining ones need a buffer.
    """

    def __init__(self, cut: Partition) -> None:
        self._cut = cut
        target = cut.program.target
        self.grouped: GroupedProgram = group_products(cut.maps)
        maps, groups = cut.maps, self.grouped.groups
        self.forms: list[Form] = [group.form for group in groups]
        lefts, rights = [x.left for x in groups], [x.right for x in groups]
        self._operands: tuple[OperandSums, ...]
        if target.shared:
            # B = A^T: the right sums, transposed, are sums of the same blocks, and all are computed in one pass over A.
            linear, rights = _one_map(maps, rights)
            self._operands = (OperandSums(cut, 0, lefts + rights, linear),)
        else:
            self._operands = (OperandSums(cut, 0, lefts, maps.left), OperandSums(cut, 1, rights, maps.right))
        self._grid = cut.grids[2]
        self._place_products()
        done = {self.grouped.alone[i] for i in self._homes if self._homes[i] == self.grouped.alone.get(i)}
        self._finished = sorted(done)
        merged = [i for i, block in enumerate(maps.stored) if block not in done]
        self._merge = self._grid.bound(self.grouped.merge, merged)

    def _place_products(self) -> None:
        """Assign groups to blocks of C: one equal to the group, one whose only term it is, or an ABSENT one.

        The other groups are assigned to the buffer. Only full-size blocks inside the matrix are used.
        """
        (m, _, n), (bm, _, bn), target = self._cut.sizes, self._cut.block, self._cut.program.target
        every = [(p, q) for p in range(target.m) for q in range(target.n)]
        free = {(p, q): True for p, q in every if (p + 1) * bm <= m and (q + 1) * bn <= n}
        homes: dict[int, Block] = {}
        for wishes in (self.grouped.alone, self.grouped.once):
            for i, block in wishes.items():
                if i not in homes and free.pop(block, False):
                    homes[i] = block
        absent = [block for block in free if target.c[block[0]][block[1]] is Kind.ABSENT]
        others = [i for i in range(len(self.grouped.groups)) if i not in homes]
        self._homes = homes | dict(zip(others, absent, strict=False))
        self._buffered = {i: t for t, i in enumerate(i for i in others if i not in self._homes)}

    @property
    def maps(self) -> Sequence[BoundMap]:
        return (*(bound for operand in self._operands for bound in operand.maps), self._merge)

    @property
    def workspace(self) -> int:
        own = self._grid.stack_bytes(len(self._buffered)) + self._cut.spare_bytes
        return own + sum(operand.nbytes for operand in self._operands)

    def stages(self) -> list[Stage]:
        bounds = (*(operand.maps for operand in self._operands), (self._merge,))
        names = SUMS if len(bounds) == len(SUMS) else (SUMS[0], SUMS[-1])
        return [sums_stage(name, several) for name, several in zip(names, bounds, strict=True)]

    def batches(
        self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int, rights: Sequence[Matrix] | None = None
    ) -> Iterator[Batch]:
        """See `Slabs.batches`: one batch of all groups."""
        grid, target = self._grid, self._cut.program.target
        buffer = grid.stack(len(self._buffered), arena.array)
        spare = self._cut.spare(arena.array)
        made = [
            operand.make(matrix, arena, spare, threads)
            for operand, matrix in zip(self._operands, (a, b), strict=False)  # of a shared A, B is not read
        ]
        count = len(self.forms)
        lefts, others = made if len(made) == 2 else (made[0][:count], [x.T for x in made[0][count:]])
        products = [self._home(i, out, buffer) for i in range(count)]
        yield Batch(range(count), lefts, others if rights is None else rights, products)
        self._merge.run(self._located(products), grid.locate(out), spare, threads)
        for place in self._finished:
            kind = target.c[place[0]][place[1]]
            if kind.half:
                zero_outside_triangle(grid.view(out, place), kind is Kind.UPPER)

    def _home(self, i: int, out: Matrix, buffer: Matrix) -> Matrix:
        """Return the matrix that stores group i until the merge, in the orientation of the product."""
        if i in self._homes:
            return self._grid.view(out, self._homes[i])
        return self._grid.stored(buffer[self._buffered[i], :, : self._grid.width])

    def _located(self, products: list[Matrix]) -> Blocks:
        """Return the products as sources of the merge."""
        grid = self._grid
        stored = [grid.stored(product) for product in products]
        shapes = np.empty((len(stored), 3), np.int64)
        for i, group in enumerate(self.grouped.groups):
            kind = Kind.FULL
            if group.kind.side == "out":
                kind = Kind.UPPER if group.kind.of_upper else Kind.LOWER
            shapes[i] = (kind.mirrored if grid.by_columns else kind, grid.height, grid.width)
        return blocks_at([x.ctypes.data for x in stored], [x.strides[0] for x in stored], shapes)


def _one_map(maps: ProgramMaps, rights: list[Sums]) -> tuple[LinearMap, list[Sums]]:
    """Return the left map over blocks of A extended by the right map's shared values, and the right sums in its ids."""
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
