"""The strided product: a batched GEMM on views a factor, and results where the next factor reads them.

A factor (a, b, c, d) reads blocks (i, j) of c rows and writes blocks of b rows. In natural order the rows of a block
are d apart, in block order they are adjacent. Between two factors rows lie in the block order of the reader where its d
exceeds 1 and the writer can write it by one view, else in that of the writer where the reader can read it, else in
natural order: BLAST's first results are [r, l, n], its second ones [r, k, n], and Monarch's [l, s, k, n].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..cpu.workspace import Arena, aligned
from .blocks import Array, Factors, alternating_rows
from .chain import FactorChain
from .pattern import Pattern
from .tiles import multiply_blocks

Empty = Callable[[int, int, bool], Array]
"""empty(rows, n, first): a matrix (rows, n), batch-first or batch-last; what the last call but one returned is free."""


@dataclass(frozen=True)
class BlockRows:
    """Blocks (i, j) of rows of a matrix: row q of a block is row i s + j t + q u, for `strides` (s, t, u)."""

    outer: int
    d: int
    inner: int
    strides: tuple[int, int, int]

    @property
    def is_uniform(self) -> bool:
        """True if all blocks are equally far from the next, so that one view has them in one axis."""
        return 1 in (self.outer, self.d) or self.strides[0] == self.d * self.strides[1]

    def view(self, matrix: Array) -> Array:
        """Return the view (outer, d, inner, n) of a matrix (rows, n)."""
        i, j, q = self.strides
        if isinstance(matrix, np.ndarray):
            row, column = matrix.strides
            shape = self.outer, self.d, self.inner, matrix.shape[1]
            return np.lib.stride_tricks.as_strided(matrix, shape, (row * i, row * j, row * q, column))
        row, column, n = view_strides(matrix)
        return matrix.as_strided((self.outer, self.d, self.inner, n), (row * i, row * j, row * q, column))

    def is_readable(self, first: bool) -> bool:
        """Return whether a GEMM can read and write the blocks in place, batch-first or batch-last."""
        return not first or self.strides[2] == 1


def view_strides(matrix: Any) -> tuple[int, int, int]:
    """Return the strides of rows and of columns of a tensor (rows, n), and n.

    A single column is given the stride 1: torch then lets the vendor's product read and write a view of it in place,
    whatever the stride of its rows, and copies it otherwise.
    """
    (row, column), n = matrix.stride(), matrix.size(1)
    return row, 1 if n == 1 else column, n


@lru_cache(maxsize=1024)
def natural(outer: int, inner: int, d: int) -> BlockRows:
    """Return the blocks of a factor's input or result in natural order, (i, q, j)."""
    return BlockRows(outer, d, inner, (inner * d, 1, d))


@lru_cache(maxsize=1024)
def by_blocks(outer: int, inner: int, d: int) -> BlockRows:
    """Return the same in block order, (i, j, q)."""
    return BlockRows(outer, d, inner, (inner * d, inner, 1))


def _placed(blocks: BlockRows, other: BlockRows) -> BlockRows | None:
    """Return blocks in natural order where the rows lie in the block order of `other`; None if no view has them."""
    whole = other.inner * other.d

    def step(natural: int, count: int) -> int | None:
        end = natural * count
        if count == 1:
            return natural
        if other.d % end == 0:
            return natural * other.inner
        if natural % other.d == 0 and whole % end == 0:
            return natural // other.d
        return natural if natural % whole == 0 else None

    counts = blocks.outer, blocks.d, blocks.inner
    i, j, q = map(step, blocks.strides, counts)
    return None if i is None or j is None or q is None else BlockRows(*counts, (i, j, q))


@dataclass(frozen=True)
class FactorStep:
    """The product by one factor: where it reads its blocks and where it writes them."""

    pattern: Pattern
    source: BlockRows
    target: BlockRows

    @property
    def calls(self) -> int:
        """The number of batched GEMMs: one where all blocks are equally far apart, else min(a, d)."""
        is_single = self.source.is_uniform and self.target.is_uniform
        return 1 if is_single else min(self.pattern.a, self.pattern.d)


@lru_cache(maxsize=1024)
def steps_of(structure: FactorChain, first: bool = False, last: bool = False) -> tuple[FactorStep, ...]:
    """Return the steps in the order of multiplication, right-most factor first.

    `first`, `last`: X and the result are copied, and in block order.
    """
    ordered = structure.patterns[::-1]
    sources = [natural(one.a, one.c, one.d) for one in ordered]
    targets = [natural(one.a, one.b, one.d) for one in ordered]
    for place in range(len(ordered) - 1):
        writer, reader = targets[place], sources[place + 1]
        if reader.d > 1 and (found := _placed(writer, reader)) is not None:
            targets[place], sources[place + 1] = found, by_blocks(reader.outer, reader.inner, reader.d)
        elif writer.d > 1 and (found := _placed(reader, writer)) is not None:
            targets[place], sources[place + 1] = by_blocks(writer.outer, writer.inner, writer.d), found
    if first:
        sources[0] = by_blocks(ordered[0].a, ordered[0].c, ordered[0].d)
    if last or structure.is_blocked:
        targets[-1] = by_blocks(ordered[-1].a, ordered[-1].b, ordered[-1].d)
    return tuple(map(FactorStep, ordered, sources, targets))


def copied_ends(structure: FactorChain, first: bool, last: bool) -> tuple[bool, bool]:
    """Return whether X and the result must be copied, for batch-first ones (`first`, `last`)."""
    steps = steps_of(structure)
    return not steps[0].source.is_readable(first), not steps[-1].target.is_readable(last)


def ends_of(structure: FactorChain, n: int, first: bool, last: bool) -> tuple[bool, bool]:
    """Return whether X and the result (rows, n) are multiplied as batch-first ones: as `first` and `last` say they are.

    A single column is batch-first and batch-last. It is batch-first, so that its blocks are copied, where no single
    view has all of them.
    """
    if n != 1:
        return first, last
    steps = steps_of(structure)
    return not steps[0].source.is_uniform, not steps[-1].target.is_uniform


def buffer_rows(structure: FactorChain, first: bool, last: bool) -> tuple[int, int]:
    """Return the rows of the two buffers that copies of the ends and results between steps alternate between."""
    return alternating_rows(structure.patterns, *copied_ends(structure, first, last))


@dataclass(frozen=True)
class Ends:
    """How the ends that no GEMM reads in place are copied to blocks and from them.

    gather(x, packed, a, c, d) and scatter(packed, y, a, b, d) copy a matrix (features, n) with its features (i, q, j)
    in the order (i, j, q); `first`: the packed one is batch-first.
    """

    gather: Callable[[Array, Array, int, int, int], None]
    scatter: Callable[[Array, Array, int, int, int], None]
    first: bool = True


def _copy(source: Array, target: Array) -> None:
    if isinstance(target, np.ndarray):
        target[...] = source
    else:
        target.copy_(source)


PERMUTED = Ends(
    lambda x, packed, *sizes: _copy(natural(*sizes).view(x), by_blocks(*sizes).view(packed)),
    lambda packed, y, *sizes: _copy(by_blocks(*sizes).view(packed), natural(*sizes).view(y)),
)
"""Features are permuted within each column."""


class Launch:
    """The products of one step for operands of any strides: what does not depend on them is computed once.

    The host bounds small products: every view takes about a microsecond, and so does every hash of a structure.
    """

    def __init__(self, step: FactorStep) -> None:
        one, self.step = step.pattern, step
        self.rows = one.rows
        self.is_matrix, self.is_joined = one.blocks == 1, step.source.is_uniform and step.target.is_uniform
        joined = (one.b, one.c) if self.is_matrix else (one.blocks, one.b, one.c)
        self._shape = joined if self.is_joined else one.parameter_shape
        self._source, self._target = _joined(step.source), _joined(step.target)

    def __call__(self, weights: Array, x: Array, out: Array) -> None:
        """Compute the blocks of out by parameters in any shape and the blocks of x, by the vendor's batched product."""
        source, target = self.step.source, self.step.target
        if isinstance(out, np.ndarray):
            np.matmul(weights.reshape(self.step.pattern.parameter_shape), source.view(x), out=target.view(out))
            return
        import torch

        if weights.shape != self._shape:
            weights = weights.view(self._shape)
        if self.is_matrix:
            torch.mm(weights, x, out=out)
        elif self.is_joined:
            torch.bmm(weights, self._source(x), out=self._target(out))
        else:
            multiply_blocks(weights, source.view(x), target.view(out))


def _joined(blocks: BlockRows) -> Callable[[Array], Array]:
    """Return the view (outer d, inner, n) of uniform blocks of a tensor, as a function."""
    count, inner = blocks.outer * blocks.d, blocks.inner
    apart, step = blocks.strides[0 if blocks.d == 1 else 1], blocks.strides[2]

    def view(matrix: Array) -> Array:
        row, column, n = view_strides(matrix)
        return matrix.as_strided((count, inner, n), (apart * row, step * row, column))

    return view


@dataclass(frozen=True)
class ViewChain:
    """The launches of W X, right-most factor first, and whether X and the result are copied."""

    structure: FactorChain
    first: bool
    last: bool
    launches: tuple[Launch, ...]

    def run(self, factors: Factors, x: Array, out: Array, ends: Ends = PERMUTED, empty: Empty | None = None) -> None:
        """Compute out (rows, n) = W x (cols, n), each batch-first or batch-last as the chain is for.

        Results between the steps are batch-last; of tensors those between plain matrices are batch-first: on an H200
        low-rank products took up to 3% longer with a batch-last result.
        """
        n, plain = x.shape[1], empty is None and all(one.is_matrix for one in self.launches)
        empty = tensors_like(x) if empty is None else empty
        if self.first:
            a, _, c, d = self.structure.patterns[-1].sizes
            given, x = x, empty(len(x), n, ends.first)
            ends.gather(given, x, a, c, d)
        *inner, final = self.launches
        for place, launch in enumerate(inner, 1):
            target = empty(launch.rows, n, plain)
            launch(factors[-place], x, target)
            x = target
        if not self.last:
            final(factors[0], x, out)
            return
        target = empty(final.rows, n, ends.first)
        final(factors[0], x, target)
        a, b, _, d = self.structure.patterns[0].sizes
        ends.scatter(target, out, a, b, d)


@lru_cache(maxsize=1024)
def view_chain(structure: FactorChain, first: bool, last: bool) -> ViewChain:
    """Return the launches for batch-first ends (`first`, `last`) or batch-last ones."""
    copied = copied_ends(structure, first, last)
    return ViewChain(structure, *copied, tuple(map(Launch, steps_of(structure, *copied))))


def padded(n: int) -> int:
    """Round n up to the columns of the buffers between steps: whole 16 bytes in every dtype, for tensor cores."""
    return -(-n // 8) * 8


def tensors_like(like: Array, width: Callable[[int], int] = padded) -> Empty:
    """Return an allocator of tensors; a batch-last one of n columns has rows of width(n) elements."""

    def empty(rows: int, n: int, first: bool) -> Array:
        if first:
            return like.new_empty((n, rows)).T
        return like.new_empty((rows, n)) if (wide := width(n)) == n else like.new_empty((rows, wide))[:, :n]

    return empty


def held_bytes(rows: tuple[int, int], n: int, item: int) -> int:
    """Return the bytes of two alternating buffers of so many rows."""
    return sum(aligned(count * padded(n) * item) for count in rows)


def arrays_in(arena: Arena, rows: tuple[int, int], n: int, dtype: Any) -> Empty:
    """Return an allocator of arrays in two alternating buffers of an arena, of `held_bytes`."""
    held = [arena.array((count * padded(n),), dtype) for count in rows]
    turn = 1

    def empty(rows: int, n: int, first: bool) -> Array:
        nonlocal turn
        turn = 1 - turn
        if first:
            return held[turn][: n * rows].reshape(n, rows).T
        return held[turn][: rows * padded(n)].reshape(rows, padded(n))[:, :n]

    return empty
