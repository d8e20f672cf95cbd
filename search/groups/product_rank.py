"""The rank of products of a scheme and inner formats, with groups of products that share a factor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...errors import PlanError
from ...schemes_db import Scheme, parse_target
from ...schemes_db.catalog import Catalog
from ...schemes_db.closure import OuterScheme
from ...schemes_db.composed_ranks import BOARD_SIDE, add_sums_and_products, composed_ranks
from ...schemes_db.constructions import AXES
from ...schemes_db.factor import IntArray
from ...schemes_db.ranks import board
from ...schemes_db.shared_factors import COMMON, Group, best_groups, classes
from ...schemes_db.uneven import Shape, Sizes, inner_products
from ..terms.ternary import TernaryTerms

PREFIX = "groups:"
"""Objectives of this search are groups:MxKxN, with the format of the inner products."""

FORMATS = "formats"
"""The objective of searches for schemes that lower the ranks of other formats."""

SIZES = 8
"""Sizes of products: bit i is set if a product is longer along axis i."""


@dataclass(frozen=True)
class InnerFormat:
    """The formats of the products of a scheme over blocks of two sizes: what they cost, and what groups save.

    Attributes:
        shape: sides m, k, n of the smaller blocks.
        longer: for each block along m, k and n whether it is longer by 1; of an axis without any, nothing.
    """

    shape: Shape
    longer: tuple[tuple[bool, ...], ...] = ((), (), ())

    def of_size(self, size: int) -> Shape:
        """Return the format of products of a size, one of SIZES."""
        m, k, n = (side + (size >> axis & 1) for axis, side in enumerate(self.shape))
        return m, k, n

    @property
    def ranks(self) -> IntArray:
        """The ranks of a product by its size, (SIZES,)."""
        return np.array([rank_of(self.of_size(size)) for size in range(SIZES)])

    def gain(self, axis: str, count: int, size: int = 0) -> int:
        """Return what a group along an axis saves; a large one may be split."""
        many = _gains(self.of_size(size))[COMMON[axis]]
        whole, rest = divmod(count, BOARD_SIDE)
        return whole * int(many[BOARD_SIDE]) + int(many[rest])

    def table(self, most: int) -> IntArray:
        """Return (SIZES, 3, most + 1) gains of groups of up to `most` products, by size and the factor in common."""
        gains = np.zeros((SIZES, 3, most + 1), dtype=np.int64)
        for size in range(SIZES):
            if all(any(self.longer[axis]) for axis in range(3) if size >> axis & 1):
                for axis, factor in COMMON.items():
                    gains[size, factor] = [self.gain(axis, count, size) for count in range(most + 1)]
        return gains

    def sizes(self, outer: Shape) -> Sizes:
        """Return the sizes of the blocks of a scheme."""
        m, k, n = (
            tuple(side + more for more in longer or (False,) * count)
            for side, count, longer in zip(self.shape, outer, self.longer, strict=True)
        )
        return m, k, n

    def groups(self, scheme: Scheme) -> tuple[Group, ...]:
        """Return the groups of products of a scheme that save the most, if all blocks are the smaller ones."""
        return best_groups(classes(scheme), self.gain)

    def cost(self, terms: TernaryTerms) -> tuple[int, int]:
        """Return the rank of the product of terms and this format, and their own."""
        return self.product_rank(terms.to_scheme()), terms.rank

    def product_rank(self, scheme: Scheme) -> int:
        """Return the rank of the product of a scheme and this format, with `groups`."""
        parts = inner_products(scheme, self.sizes(scheme.target.shape), self.groups(scheme))
        return sum(rank_of(part.shape) for part in parts)


@lru_cache(maxsize=1)
def board_ranks() -> IntArray:
    """Return the lowest ranks that the shipped schemes give."""
    with Catalog.in_memory() as catalog:
        return composed_ranks({kept: rank for kept, (rank, _) in catalog.best_ranks("Z").items()}, BOARD_SIDE)


def by_products(objective: str) -> bool:
    """Return whether an objective is about products of a scheme over blocks."""
    return objective == FORMATS or objective.startswith(PREFIX)


def sum_of_ranks(scheme: Scheme) -> int:
    """Return the sum of the ranks of all formats up to BOARD_SIDE that the shipped schemes and this one give."""
    ranks = board_ranks().copy()
    for _ in OuterScheme(scheme).lower(ranks):
        pass
    add_sums_and_products(ranks)
    return sum(int(ranks[shape]) for shape in board())


def rank_of(shape: Shape) -> int:
    """Return the lowest rank of a format; one beyond BOARD_SIDE is cut in halves."""
    if max(shape) <= BOARD_SIDE:
        return int(board_ranks()[shape])
    small, middle, large = sorted(shape)
    return rank_of((small, middle, large // 2)) + rank_of((small, middle, large - large // 2))


@lru_cache(maxsize=1 << 12)
def _gains(shape: Shape) -> IntArray:
    """Return (3, BOARD_SIDE + 1) the products that a group of a size saves, by the factor in common (U, V, W)."""
    ranks = board_ranks()
    gains = np.zeros((3, BOARD_SIDE + 1), dtype=np.int64)
    for place, axis in enumerate(AXES):
        row = gains[COMMON[axis]]
        for count in range(2, BOARD_SIDE + 1):
            wide = tuple(side * count if i == place else side for i, side in enumerate(shape))
            alone = count * rank_of(shape) - int(ranks[wide]) if max(wide) <= BOARD_SIDE else 0
            row[count] = max(alone, *(row[part] + row[count - part] for part in range(1, count)))
    return gains


@lru_cache(maxsize=256)
def inner_format(objective: str) -> InnerFormat:
    """Return the inner format of an objective, such as `groups:1x2x2`.

    Raises:
        PlanError: it names none, or one of which no group saves anything.
    """
    text = objective.removeprefix(PREFIX)
    if not objective.startswith(PREFIX) or not re.fullmatch(r"\d+x\d+x\d+", text):
        raise PlanError(f"objective {objective!r} needs the format of the inner products: groups:1x2x2")
    shape = parse_target(text).shape
    if max(shape) > BOARD_SIDE:
        raise PlanError(f"inner formats have sides up to {BOARD_SIDE}, not {text}")
    if not _gains(shape).any():
        rank = rank_of(shape)
        raise PlanError(f"no group of products {text} saves anything: they are {rank} products each in any number")
    return InnerFormat(shape)
