"""The steps of a block low-rank product: batched GEMMs on strided views, chained without a permutation pass.

With the batch contiguous between steps, the order of the blocks that one step writes is a stride of the next:
Monarch's is [l, s, k, n], whose rows (l, s) of one k are b2 n apart; BLAST's are [r, l, n] and [r, k, n].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .block_low_rank import Blast, BlockLowRank, LowRank, Monarch

Array = Any
"""A numpy array or a torch tensor."""


@dataclass(frozen=True)
class FactorStep:
    """The sizes of `count` products (m, k) times (k, n)."""

    count: int
    m: int
    k: int

    @property
    def name(self) -> str:
        return f"{self.count} blocks {self.m}x{self.k}" if self.count > 1 else f"{self.m}x{self.k}"

    @property
    def parameters(self) -> int:
        return self.count * self.m * self.k


@lru_cache(maxsize=1024)
def steps_of(structure: BlockLowRank) -> tuple[FactorStep, ...]:
    """Return the steps in the order of multiplication, right-most factor first."""
    if isinstance(structure, LowRank):
        return FactorStep(1, structure.rank, structure.cols), FactorStep(1, structure.rows, structure.rank)
    if isinstance(structure, Monarch):
        b1, b2, r = structure.b1, structure.b2, structure.rank
        return FactorStep(b1, r * b2, structure.p), FactorStep(b2, structure.q, b1 * r)
    assert isinstance(structure, Blast)
    b1, b2, r = structure.b1, structure.b2, structure.rank
    return FactorStep(b1, r, structure.p), FactorStep(r, b2, b1), FactorStep(b2, structure.q, r)


def views(
    structure: BlockLowRank, factors: Sequence[Array], x: Array, buffers: Sequence[Array], out: Array
) -> list[tuple[Array, Array, Array]]:
    """Return views (weights (count, m, k), source (count, k, n), target (count, m, n)) of every step.

    x (cols, n) and out (rows, n) each have a stride of one; `buffers` are (elements, n), C-ordered, one for
    each of `structure.intermediates()`.
    """
    n = x.shape[1]
    if isinstance(structure, LowRank):
        left, right = factors
        (inner,) = buffers
        return [(right[None], x[None], inner[None]), (left[None], inner[None], out[None])]
    assert isinstance(structure, Monarch | Blast)
    b1, b2, p, q, r = structure.b1, structure.b2, structure.p, structure.q, structure.rank
    given = x.reshape(b1, p, n)
    if isinstance(structure, Monarch):
        left, right = factors
        (inner,) = buffers
        wanted = out.reshape(q, b2, n).swapaxes(0, 1) if structure.interleaved else out.reshape(b2, q, n)
        read = inner.reshape(b1 * r, b2, n).swapaxes(0, 1)
        first = right.reshape(b1, r * b2, p), given, inner.reshape(b1, r * b2, n)
        return [first, (left.reshape(b2, q, b1 * r), read, wanted)]
    left, scales, right = factors
    inner, mixed = buffers[0].reshape(r, b1, n), buffers[1].reshape(r, b2, n)
    return [
        (right, given, inner.swapaxes(0, 1)),
        (scales, inner, mixed),
        (left, mixed.swapaxes(0, 1), out.reshape(b2, q, n)),
    ]
