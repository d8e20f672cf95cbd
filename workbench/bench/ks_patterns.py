"""The patterns of the Kronecker-sparse benchmark, and samples of them.

Source: Gonon, Zheng, Carrivain, Le, "Fast Inference with Kronecker-Sparse Matrices" (ICML 2025), Figure 7: sizes of
blocks, numbers of copies, and the bound that no array has 2^31 elements or more.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np

from ...kernels.kronecker import Pattern

BATCH = 25_088
"""196 tokens of 128 images."""

GOLDEN = (5**0.5 - 1) / 2

MOST_ELEMENTS = 2**31 - 1

BLOCKS = (48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
COPIES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
FEW_COPIES = (4, 16, 64)

LEFT_OUT = {(1024, 256), (256, 1024), (128, 512), (512, 128), (64, 256), (256, 64)}
"""Blocks (b, c) that are not repeated along the diagonal."""

PAIRS = tuple((b, c) for b, c in product(BLOCKS, BLOCKS) if b in (c, 4 * c) or c == 4 * b)
REPEATED = tuple(block for block in PAIRS if block not in LEFT_OUT)


def paper_patterns() -> tuple[Pattern, ...]:
    """The 627 patterns: outputs and inputs are equal, or one is four times the other."""
    found = [Pattern(1, b, c, d) for (b, c), d in product(PAIRS, COPIES)]
    found += [Pattern(a, b, c, d) for a, (b, c), d in product(COPIES[1:], REPEATED, FEW_COPIES)]
    return within_bounds(found)


ENERGY_BLOCKS_A, ENERGY_COPIES = (1, 4, 16, 32, 64), (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def energy_patterns() -> tuple[Pattern, ...]:
    """The patterns of the paper's measurements of energy (appendix E.1), within the same bounds."""
    some = product(ENERGY_BLOCKS_A, REPEATED, ENERGY_COPIES)
    return within_bounds(Pattern(a, b, c, d) for a, (b, c), d in some)


def within_bounds(patterns: Iterable[Pattern]) -> tuple[Pattern, ...]:
    """Return the patterns for which no array has 2^31 elements or more."""
    return tuple(one for one in patterns if max(BATCH * one.rows, BATCH * one.cols, one.nonzeros) <= MOST_ELEMENTS)


def sample(patterns: tuple[Pattern, ...], count: int, seed: int = 0) -> tuple[Pattern, ...]:
    """`count` patterns, spread over strata of d (1, below 16, more), density and size in proportion to their numbers.

    A systematic sample: the patterns in the order of their strata, at equal steps from a start drawn by the seed. They
    are listed so that every beginning of the list is spread over the strata too: a budget may end a suite early.
    """
    if count >= len(patterns):
        return patterns
    edges = np.quantile([one.density for one in patterns], np.linspace(0, 1, 7)[1:-1])

    def stratum(one: Pattern) -> tuple[int, int, int]:
        group = 0 if one.d == 1 else 1 if one.d < 16 else 2
        return group, int(np.searchsorted(edges, one.density)), one.rows * one.cols

    ordered = sorted(patterns, key=lambda one: (stratum(one), one))
    step = len(ordered) / count
    start = np.random.default_rng(seed).uniform(0, step)
    places = sorted(range(count), key=lambda i: i * GOLDEN % 1)
    return tuple(ordered[int(start + step * i)] for i in places)
