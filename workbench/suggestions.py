"""Lists of Kronecker-sparse patterns for a layer, and the sizes that more patterns divide."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..errors import PlanError
from ..kernels.structured.chain import KroneckerSparse
from ..kernels.structured.constructions import LEAST_BLOCK, divisors, low_rank, pairs
from ..kernels.structured.pattern import Pattern

LEAST_PAD = 64
"""Padded sizes are multiples of this, so that 2 to 64 blocks divide them."""


def suggested(rows: int, cols: int, density: float) -> tuple[KroneckerSparse, ...]:
    """Return single factors, pairs of factors as Monarch's, and low rank, each of at most density rows cols parameters.

    For each kind and number of blocks it is the list with the most parameters.

    Raises:
        PlanError: no list has so few parameters, or the density is not between 0 and 1. The text says which sizes have
            patterns, or the least density.
    """
    if not 0 < density <= 1:
        raise PlanError(f"density must be above 0 and at most 1, not {density}")
    budget = density * rows * cols
    found = [*_single(rows, cols, budget), *pairs(rows, cols, budget)]
    if rank := int(budget // (rows + cols)):
        found.append(KroneckerSparse(low_rank(rows, cols, min(rank, rows, cols))))
    if not found:
        advice = "" if (sizes := padded(rows, cols)) == (rows, cols) else f", or pad to {sizes[0]} x {sizes[1]}"
        least = (rows + cols) / (rows * cols)
        raise PlanError(
            f"no list for {rows} x {cols} has a density of at most {density:g}: rank 1 has {least:.3g}; raise the "
            f"density{advice}"
        )
    return tuple(found)


def padded(rows: int, cols: int) -> tuple[int, int]:
    """Return the least larger sizes that patterns divide: the same if LEAST_BLOCK does, else multiples of LEAST_PAD."""
    if math.gcd(rows, cols) % LEAST_BLOCK == 0:
        return rows, cols
    return -(-rows // LEAST_PAD) * LEAST_PAD, -(-cols // LEAST_PAD) * LEAST_PAD


def padding_advice(rows: int, cols: int) -> str | None:
    """Return why there are few lists for a layer of these sizes and which sizes have more, or None."""
    if (sizes := padded(rows, cols)) == (rows, cols):
        return None
    return (
        f"only divisors of gcd({rows}, {cols}) = {math.gcd(rows, cols)} can be numbers of blocks; a layer padded to "
        f"{sizes[0]} x {sizes[1]} has more patterns"
    )


def _single(rows: int, cols: int, budget: float) -> Iterator[KroneckerSparse]:
    """Yield factors (a, b, c, d) with the fewest blocks a d within the budget, for every factorization into a d."""
    common = math.gcd(rows, cols)
    blocks = next((one for one in divisors(common) if rows * cols / one <= budget), None)
    if blocks is None or min(rows, cols) // blocks < LEAST_BLOCK:
        return
    for d in divisors(blocks):
        yield KroneckerSparse((Pattern(blocks // d, rows // blocks, cols // blocks, d),))
