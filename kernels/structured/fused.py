"""Chains of factors with pairs of small-block neighbours fused to one kernel, their intermediate result on chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..cuda.launch import starter
from .blocks import empty_result
from .gather import LARGEST_BLOCK, gather_reason, multiply_gathered, words_of
from .pattern import Pattern
from .tensors import multiply_strided
from .tiles import MOST_PROGRAMS, power_above, triton_reason

Tensor = Any

MOST_HELD = 256
"""Maximum number of interdependent elements of an intermediate result, which are stored for every column."""

ELEMENTS = 8192
"""Words of 4 bytes of the intermediate result that a program of 256 threads stores."""


@dataclass(frozen=True)
class PairTile:
    """The tile of one program: columns of the batch, blocks q of K2 and rows p of each, diagonals j."""

    n: int
    q: int
    p: int
    j: int

    def programs(self, pair: tuple[Pattern, Pattern], n: int) -> int:
        """Return the number of programs of the grid for n columns."""
        return pair[0].a * -(-pair[1].d // self.j) * -(-n // self.n)


def pair_tile(pair: tuple[Pattern, Pattern], first: bool, words: int) -> PairTile:
    """Return the tile of a pair: long in the contiguous dimension, diagonals (batch-first) or columns (batch-last)."""
    q, p = power_above(pair[0].c), power_above(pair[1].b)
    rest = max(16, ELEMENTS // (q * p * words))
    j = min(power_above(pair[1].d), rest // 4 if first else max(1, rest // 128))
    return PairTile(rest // j, q, p, j)


def is_fused(left: Pattern, right: Pattern, n: int, dtype: str) -> bool:
    """Return whether K1 K2 runs as one kernel: chainable, and interdependent elements fit on chip."""
    chains = right.a == left.a * left.c and left.d == right.b * right.d
    if not chains or power_above(left.c) * power_above(right.b) > MOST_HELD:
        return False
    if max(left.b, right.c) > LARGEST_BLOCK:
        return False
    pair = left, right
    return max(pair_tile(pair, first, words_of(dtype)).programs(pair, n) for first in (False, True)) <= MOST_PROGRAMS


def fused_places(patterns: Sequence[Pattern], n: int, dtype: str) -> tuple[tuple[int, ...], ...]:
    """Return the factors of every launch, right-most first: pairs from the right, and single factors between them."""
    found, place = [], len(patterns) - 1
    while place >= 0:
        paired = place > 0 and is_fused(patterns[place - 1], patterns[place], n, dtype)
        found.append((place - 1, place) if paired else (place,))
        place -= len(found[-1])
    return tuple(found)


def fused_reason(patterns: Sequence[Pattern], n: int, dtype: str) -> str | None:
    """Return the reason why no neighbours of a chain are fused, or None."""
    if reason := triton_reason():
        return reason
    if all(len(places) == 1 for places in fused_places(patterns, n, dtype)):
        return f"no two neighbours chain with rank 1 and hold at most {MOST_HELD} elements for a column"
    return None


def multiply_fused(weights: tuple[Tensor, Tensor], pair: tuple[Pattern, Pattern], x: Tensor, out: Tensor) -> None:
    """Compute out = K1 K2 x for any strides; intermediate results of half precision are stored in float32."""
    import torch

    from .fused_kernel import multiply_pair

    (_, b1, c1, _), (_, b2, c2, d) = (one.sizes for one in pair)
    tile = pair_tile(pair, out.stride(1) != 1, words_of(str(x.dtype).removeprefix("torch.")))
    parts = 2 if x.is_complex() else 1
    operands = [torch.view_as_real(one) if parts == 2 else one for one in (x, *weights, out)]
    starter(multiply_pair, (tile.programs(pair, x.shape[1]),), x)(
        *operands,
        x.shape[1],
        b1,
        c1,
        b2,
        c2,
        *(parts * stride for stride in (*x.stride(), *out.stride())),
        D=d,
        DOUBLE=x.dtype in (torch.float64, torch.complex128),
        PARTS=parts,
        N=tile.n,
        Q=tile.q,
        P=tile.p,
        J=tile.j,
        num_warps=8,
    )


@dataclass(frozen=True)
class FusedChain:
    """K1 ... KL X by the launches of `fused_places`; unfused factors are gathered, or multiplied on views."""

    patterns: tuple[Pattern, ...]
    dtype: str

    def run(self, factors: Sequence[Tensor], x: Tensor, out: Tensor) -> None:
        """Compute out (rows, n) = K1 ... KL x (cols, n); between launches the batch is last."""
        n = x.shape[1]
        for places in fused_places(self.patterns, n, self.dtype):
            head = self.patterns[places[0]]
            target = out if places[0] == 0 else empty_result(x, head.rows, first=False)
            if len(places) == 2:
                weights = factors[places[0]], factors[places[1]]
                multiply_fused(weights, (head, self.patterns[places[1]]), x, target)
            elif gather_reason((head,), n, self.dtype) is None:
                multiply_gathered(factors[places[0]], head, x, target)
            else:
                multiply_strided(factors[places[0]], head, x, target)
            x = target
