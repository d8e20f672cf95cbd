"""The rank of the product of a scheme and an inner format, with groups of products that share a factor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...errors import PlanError
from ...schemes_db import Scheme, parse_target
from ...schemes_db.catalog import Catalog
from ...schemes_db.composed_ranks import BOARD_SIDE, composed_ranks
from ...schemes_db.constructions import AXES
from ...schemes_db.factor import IntArray
from ...schemes_db.shared_factors import COMMON, Group, best_groups, classes
from ...schemes_db.uneven import Shape
from ..terms.ternary import TernaryTerms

POOL = 16
"""Number of best schemes that walks for groups start from."""

PREFIX = "groups:"
"""Objectives of this search are groups:MxKxN, with the format of the inner products."""


@dataclass(frozen=True)
class InnerFormat:
    """The format of the inner products, the lowest rank of it, and what groups of products save.

    Attributes:
        shape: sides m, k, n.
        rank: the rank of one inner product, from the shipped schemes.
        gains: (3, BOARD_SIDE + 1) the products that a group of a size saves, by the factor in common (U, V, W).
    """

    shape: Shape
    rank: int
    gains: IntArray

    def gain(self, axis: str, count: int) -> int:
        """Return what a group along an axis saves; a large one may be split."""
        many = self.gains[COMMON[axis]]
        whole, rest = divmod(count, BOARD_SIDE)
        return whole * int(many[BOARD_SIDE]) + int(many[rest])

    def table(self, most: int) -> IntArray:
        """Return (3, most + 1) gains of groups of up to `most` products."""
        return np.array(
            [[self.gain(axis, count) for count in range(most + 1)] for axis in sorted(AXES, key=COMMON.__getitem__)]
        )

    def groups(self, scheme: Scheme) -> tuple[Group, ...]:
        """Return the groups of products of a scheme that save the most."""
        return best_groups(classes(scheme), self.gain)

    def cost(self, terms: TernaryTerms) -> tuple[int, int]:
        """Return the rank of the product of terms and this format, and their own."""
        return self.product_rank(terms.to_scheme()), terms.rank

    def product_rank(self, scheme: Scheme) -> int:
        """Return the rank of the product of a scheme and this format, with the best groups."""
        saved = sum(self.gain(axis, len(products)) for axis, products in self.groups(scheme))
        return scheme.rank * self.rank - saved


@lru_cache(maxsize=1)
def _ranks() -> IntArray:
    """Return the lowest ranks that the shipped schemes give."""
    with Catalog.in_memory() as catalog:
        return composed_ranks({kept: rank for kept, (rank, _) in catalog.best_ranks("Z").items()}, BOARD_SIDE)


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
    ranks = _ranks()
    rank = int(ranks[shape])
    gains = np.zeros((3, BOARD_SIDE + 1), dtype=np.int64)
    for place, axis in enumerate(AXES):
        row = gains[COMMON[axis]]
        for count in range(2, BOARD_SIDE + 1):
            wide = tuple(side * count if i == place else side for i, side in enumerate(shape))
            alone = count * rank - int(ranks[wide]) if max(wide) <= BOARD_SIDE else 0
            row[count] = max(alone, *(row[part] + row[count - part] for part in range(1, count)))
    if not gains.any():
        raise PlanError(f"no group of products {text} saves anything: they are {rank} products each in any number")
    return InnerFormat(shape, rank, gains)
