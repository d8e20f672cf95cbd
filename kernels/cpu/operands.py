"""The sums of one operand, grouped side by side in slots; sums that are blocks of the operand are views."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...schemes_db.grids import Kind
from ..arrays import Matrix
from ..codegen.grouping import Sums
from ..codegen.maps import Block, LinearMap
from .blocks import Blocks, leading_dimension
from .mapping import BoundMap
from .partition import Partition, blocks_of
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
        self._whole = [i for i in range(len(places)) if i not in self._halves]
        # Permutation from the whole blocks followed by the copies to the order of the map's sources.
        self._order = [(self._whole + self._halves).index(i) for i in range(len(places))]
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

    def make(self, matrix: Matrix, arena: Arena, spare: npt.NDArray[np.int64], threads: int) -> list[Matrix]:
        """Compute all sums of an operand: for every group the matrix that it multiplies."""
        slots = [arena.array(self._slot_shape(length), self._grid.storage) for length in self._lengths]
        source = self._grid.locate(matrix)
        if self._halves:
            copies = self._blocks(slots[: len(self._halves)], self._lengths[: len(self._halves)])
            self._copying.run(source.chosen(self._halves), copies, _same(len(self._halves)), spare, threads)
            source = source.joined(self._whole, copies, list(range(len(self._halves)))).chosen(self._order)
        made = self._blocks(slots[len(self._halves) :], self._lengths[len(self._halves) :])
        if len(made):
            self._adding.run(source, made, _same(len(made)), spare, threads)
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
        return Blocks.of(addresses, strides, (Kind.FULL, height, width))


def _plain(parts: Sums) -> int | None:
    """Return the source of a single sum of one term with coefficient 1, else None."""
    if len(parts) == 1 and len(parts[0]) == 1 and parts[0][0][0] == 1:
        return parts[0][0][1]
    return None


def _same(count: int) -> dict[int, int]:
    return {i: i for i in range(count)}
