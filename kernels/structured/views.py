"""The strided product: a batched GEMM on views a factor, and results where the next factor reads them.

A factor (a, b, c, d) reads blocks (i, j) of c rows and writes blocks of b rows. In natural order the rows of a block
are d apart, in block order they are adjacent. Between two factors rows lie in the block order of the reader where its d
exceeds 1 and the writer can write it by one view, else in that of the writer where the reader can read it, else in
natural order: BLAST's first results are [r, l, n], its second ones [r, k, n], and Monarch's [l, s, k, n].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..cpu.workspace import Arena, aligned
from .blocks import alternating_rows, is_batch_first
from .chain import FactorChain
from .pattern import Pattern

Array = Any
"""A numpy array or a torch tensor."""

Factors = Sequence[Array]

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

    def view(self, matrix: Array, joined: bool = False) -> Array:
        """Return the view (outer, d, inner, n) of a matrix (rows, n), or, of uniform blocks, (outer d, inner, n).

        The host bounds small products, and every view takes about a microsecond: it is one operation.
        """
        of_numpy = isinstance(matrix, np.ndarray)
        row, column = matrix.strides if of_numpy else matrix.stride()
        i, j, q = (row * step for step in self.strides)
        shape: tuple[int, ...] = (self.outer, self.d, self.inner, matrix.shape[1])
        strides: tuple[int, ...] = (i, j, q, column)
        if joined:
            shape, strides = (self.outer * self.d, *shape[2:]), (i if self.d == 1 else j, q, column)
        if of_numpy:
            return np.lib.stride_tricks.as_strided(matrix, shape, strides)
        return matrix.as_strided(shape, strides)

    def is_readable(self, first: bool) -> bool:
        """Return whether a GEMM can read and write the blocks in place, batch-first or batch-last."""
        return not first or self.strides[2] == 1


def natural(outer: int, inner: int, d: int) -> BlockRows:
    """Return the blocks of a factor's input or result in natural order, (i, q, j)."""
    return BlockRows(outer, d, inner, (inner * d, 1, d))


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
class Step:
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
def steps_of(structure: FactorChain, first: bool = False, last: bool = False) -> tuple[Step, ...]:
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
    return tuple(map(Step, ordered, sources, targets))


def copied_ends(structure: FactorChain, first: bool, last: bool) -> tuple[bool, bool]:
    """Return whether X and the result must be copied, for batch-first ones (`first`, `last`)."""
    steps = steps_of(structure)
    return not steps[0].source.is_readable(first), not steps[-1].target.is_readable(last)


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


def _gather(x: Array, packed: Array, outer: int, inner: int, d: int) -> None:
    _copy(natural(outer, inner, d).view(x), by_blocks(outer, inner, d).view(packed))


def _scatter(packed: Array, y: Array, outer: int, inner: int, d: int) -> None:
    _copy(by_blocks(outer, inner, d).view(packed), natural(outer, inner, d).view(y))


def _copy(source: Array, target: Array) -> None:
    if isinstance(target, np.ndarray):
        target[...] = source
    else:
        target.copy_(source)


PERMUTED = Ends(_gather, _scatter)
"""Features are permuted within each column."""


def multiply_views(
    structure: FactorChain, factors: Factors, x: Array, out: Array, ends: Ends, empty: Empty, plain: bool = False
) -> None:
    """Compute out (rows, n) = W x for x (cols, n), each batch-first or batch-last, by GEMMs on views.

    Results between the steps are batch-last, or with `plain` batch-first.
    """
    n = x.shape[1]
    first, last = copied_ends(structure, n > 1 and is_batch_first(x), n > 1 and is_batch_first(out))
    steps = steps_of(structure, first, last)
    if first:
        a, _, c, d = structure.patterns[-1].sizes
        given, x = x, empty(len(x), n, ends.first)
        ends.gather(given, x, a, c, d)
    for step, weights in zip(steps, reversed(structure.canonical(factors)), strict=True):
        ends_here = step is steps[-1] and not last
        target = out if ends_here else empty(step.pattern.rows, n, ends.first if step is steps[-1] else plain)
        multiply_step(step, weights, x, target)
        x = target
    if last:
        a, b, _, d = structure.patterns[0].sizes
        ends.scatter(x, out, a, b, d)


def multiply_step(step: Step, weights: Array, x: Array, out: Array) -> None:
    """Compute the blocks of out by weights (a, d, b, c) and the blocks of x, by the vendor's batched product."""
    if isinstance(out, np.ndarray):
        np.matmul(weights, step.source.view(x), out=step.target.view(out))
        return
    from .tensors import multiply_batch, multiply_blocks

    if step.source.is_uniform and step.target.is_uniform:
        multiply_batch(weights.flatten(0, 1), step.source.view(x, True), step.target.view(out, True))
    else:
        multiply_blocks(weights, step.source.view(x), step.target.view(out))


def multiply_strided(structure: FactorChain, factors: Factors, x: Array, out: Array) -> None:
    """Compute `multiply_views` of tensors; results between plain matrices are batch-first.

    On an H200 low-rank products took up to 3% longer with a batch-last result between them.
    """
    plain = all(one.a == one.d == 1 for one in structure.patterns)
    multiply_views(structure, factors, x, out, PERMUTED, tensors_like(x), plain)


def padded(n: int) -> int:
    """Round n up to the columns of the buffers between steps: whole 16 bytes in every dtype, for tensor cores."""
    return -(-n // 8) * 8


def tensors_like(like: Array, width: Callable[[int], int] = padded) -> Empty:
    """Return an allocator of tensors; a batch-last one of n columns has rows of width(n) elements."""

    def empty(rows: int, n: int, first: bool) -> Array:
        return like.new_empty((n, rows)).T if first else like.new_empty((rows, width(n)))[:, :n]

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
