"""Lists of patterns that replace dense layers, left-most factor first: those of the literature, and suggestions.

Source: Gonon, Zheng, Carrivain, Le (ICML 2025), Table 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...arguments import INTEGER, need
from ...errors import PlanError
from .chain import KroneckerSparse
from .pattern import Pattern, check_composes

Patterns = tuple[Pattern, ...]


def dense(rows: int, cols: int) -> Patterns:
    """Return one dense factor."""
    return (Pattern(1, rows, cols, 1),)


def low_rank(rows: int, cols: int, rank: int) -> Patterns:
    """Return two dense factors of inner size `rank`."""
    return Pattern(1, rows, rank, 1), Pattern(1, rank, cols, 1)


def square_dyadic(size: int) -> Patterns:
    """Return the log2(size) factors (2^(l-1), 2, 2, 2^(L-l)) of the butterfly of a size; see `block_butterfly`."""
    return block_butterfly(size, 1)


def kaleidoscope(size: int) -> Patterns:
    """Return a butterfly times the transpose of one; see `square_dyadic`."""
    first = square_dyadic(size)
    return (*first, *(pattern.transposed for pattern in reversed(first)))


def block_butterfly(size: int, block: int) -> Patterns:
    """Return the factors (2^(l-1), 2t, 2t, 2^(L-l)) with t = `block`, of a size 2^L t.

    Raises:
        PlanError: size / block is not a power of two, or below 2.
    """
    need(INTEGER, size=size, block=block)
    levels = size // block if block > 0 else 0
    if levels < 2 or levels & (levels - 1) or levels * block != size:
        nearest = block * 2 ** max(1, round(math.log2(max(levels, 2)))) if block > 0 else 0
        mend = f"; {nearest} would do" if nearest else ""
        raise PlanError(f"a butterfly of blocks of {block} needs a size of {block} 2^L, L >= 1, not {size}{mend}")
    count = levels.bit_length() - 1
    return tuple(Pattern(1 << i, 2 * block, 2 * block, 1 << (count - 1 - i)) for i in range(count))


def monarch(rows: int, cols: int, parts: int) -> Patterns:
    """Return the factors (1, M/p, r/p, p) and (p, r/p, N/p, 1) with r = min(M, N) and p = `parts`.

    Raises:
        PlanError: p does not divide both sides.
    """
    need(INTEGER, least=1, rows=rows, cols=cols, parts=parts)
    if rows % parts or cols % parts:
        common = math.gcd(rows, cols)
        some = [str(p) for p in range(1, min(common, 4096) + 1) if common % p == 0]
        some = some if len(some) <= 12 else [*some[:6], "...", *some[-5:]]
        raise PlanError(f"parts must divide {rows} and {cols}, not {parts}; choose one of {', '.join(some)}")
    inner = min(rows, cols) // parts
    return Pattern(1, rows // parts, inner, parts), Pattern(parts, inner, cols // parts, 1)


def deformable_butterfly(patterns: Sequence[Pattern]) -> Patterns:
    """Return any list of factors that compose: a_l c_l d_l = a_(l+1) b_(l+1) d_(l+1).

    Raises:
        PlanError: neighbours do not compose.
    """
    check_composes(patterns)
    return tuple(patterns)


LEAST_BLOCK = 16
"""Minimum side of suggested blocks: smaller ones are memory-bound with any strategy."""


def pairs(rows: int, cols: int, budget: float) -> Iterator[KroneckerSparse]:
    """Yield pairs (1, M/p, r p, p)(p, r p, N/p, 1), chainable with blocks of rank r; for every p the largest r.

    None for a p whose blocks would have full rank: a pair would have no fewer parameters than the matrix.
    """
    for p in divisors(math.gcd(rows, cols))[1:]:
        rank, side = int(budget // (p * (rows + cols))), min(rows, cols) // p
        if 1 <= rank < side and min(side, rank * p) >= LEAST_BLOCK:
            yield KroneckerSparse((Pattern(1, rows // p, rank * p, p), Pattern(p, rank * p, cols // p, 1)))


def divisors(number: int) -> list[int]:
    """Return the divisors in increasing order."""
    small = [one for one in range(1, math.isqrt(number) + 1) if number % one == 0]
    return sorted({*small, *(number // one for one in small)})
