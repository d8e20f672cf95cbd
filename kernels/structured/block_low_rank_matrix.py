"""A block low-rank matrix of numpy arrays: its structure and its factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.masks import refuse_masks
from ..bfloat16 import converted, dtype_of
from .block_low_rank import BlockLowRank
from .block_low_rank_naive import dense_matrix

Matrix = npt.NDArray[Any]

DTYPES = ("float16", "bfloat16", "float32", "float64")
"""Dtypes of parameters; the bits of a bfloat16 are stored in uint16."""


@dataclass(frozen=True, eq=False)
class BlockLowRankMatrix:
    """W by the factors of a structure in the canonical layout, left-most first, all of one dtype.

    Raises:
        PlanError: a factor's shape or dtype does not match the structure.
    """

    structure: BlockLowRank
    factors: tuple[Matrix, ...]
    dtype: str

    def __post_init__(self) -> None:
        refuse_masks(factors=self.factors)
        if self.dtype not in DTYPES:
            raise PlanError(f"factors of {self.dtype} are not supported; convert them to one of {', '.join(DTYPES)}")
        storage = np.dtype(np.uint16 if self.dtype == "bfloat16" else self.dtype)
        shapes = self.structure.factor_shapes
        if len(self.factors) != len(shapes):
            raise PlanError(f"{self.structure.name} has {len(shapes)} factors, not {len(self.factors)}")
        for place, (weights, shape) in enumerate(zip(self.factors, shapes, strict=True), 1):
            if weights.shape != shape or weights.dtype != storage:
                raise PlanError(
                    f"factor {place} is {weights.dtype} of shape {weights.shape}; {self.structure.name} needs "
                    f"{self.dtype} of shape {shape}: reshape it, or convert it with lcma.block_low_rank.from_layout"
                )

    @classmethod
    def of(cls, structure: BlockLowRank, factors: Sequence[Matrix]) -> BlockLowRankMatrix:
        """Return the matrix of factors in the canonical layout; uint16 are the bits of bfloat16.

        Raises:
            PlanError: as the class, or there is no factor.
        """
        refuse_masks(factors=factors)
        if not factors:
            raise PlanError(f"{structure.name} needs its factors")
        return cls(structure, tuple(map(np.ascontiguousarray, factors)), dtype_of(factors[0]))

    @classmethod
    def random(
        cls, structure: BlockLowRank, seed: int | np.random.Generator = 0, dtype: str = "float32"
    ) -> BlockLowRankMatrix:
        """Return random factors, see `BlockLowRank.draw`."""
        return cls(structure, structure.draw(np.random.default_rng(seed), dtype), dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols) of W."""
        return self.structure.rows, self.structure.cols

    @property
    def nbytes(self) -> int:
        """Bytes of all parameters."""
        return sum(weights.nbytes for weights in self.factors)

    def astype(self, dtype: str) -> BlockLowRankMatrix:
        """Return the matrix with factors of another dtype, rounded to nearest.

        Raises:
            PlanError: the dtype is not supported.
        """
        if dtype not in DTYPES:
            raise PlanError(f"factors of {self.dtype} can't become {dtype}; choose one of {', '.join(DTYPES)}")
        factors = tuple(converted(weights, self.dtype, dtype) for weights in self.factors)
        return BlockLowRankMatrix(self.structure, factors, dtype)

    def dense(self) -> Matrix:
        """Return W (rows, cols); of a bfloat16 matrix in float32."""
        factors = self.astype("float32").factors if self.dtype == "bfloat16" else self.factors
        return dense_matrix(self.structure, factors)

    def __repr__(self) -> str:
        return f"<{self.structure.name} {self.dtype}>"
