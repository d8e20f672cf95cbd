"""A Kronecker-sparse matrix of numpy arrays: factors with their patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.masks import refuse_masks
from ..bfloat16 import converted, dtype_of
from .chain import KroneckerSparse
from .naive import dense_product
from .pattern import Pattern

Matrix = npt.NDArray[Any]

DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
"""Dtypes of parameters; the bits of a bfloat16 are stored in uint16."""


@dataclass(frozen=True, eq=False)
class KroneckerMatrix:
    """W = K1 K2 ... KL by the parameters of its factors, each (a, d, b, c), all of one dtype.

    Raises:
        PlanError: a factor's shape does not match its pattern, dtypes differ, or factors do not compose.
    """

    patterns: tuple[Pattern, ...]
    factors: tuple[Matrix, ...]
    dtype: str

    def __post_init__(self) -> None:
        _ = self.structure
        refuse_masks(factors=self.factors)
        if len(self.factors) != len(self.patterns):
            raise PlanError(f"{len(self.patterns)} patterns and {len(self.factors)} factors; give one for each other")
        if self.dtype not in DTYPES:
            raise PlanError(f"factors of {self.dtype} are not supported; convert them to one of {', '.join(DTYPES)}")
        storage = np.dtype(np.uint16 if self.dtype == "bfloat16" else self.dtype)
        for place, (weights, pattern) in enumerate(zip(self.factors, self.patterns, strict=True), 1):
            if weights.shape != pattern.parameter_shape:
                raise PlanError(
                    f"factor {place} has shape {weights.shape}, but {pattern} needs (a, d, b, c) = "
                    f"{pattern.parameter_shape}; reshape it, or convert it with lcma.kronecker.from_layout"
                )
            if weights.dtype != storage:
                raise PlanError(f"factor {place} is {weights.dtype}, not {self.dtype}; convert all to one dtype")

    @classmethod
    def of(cls, patterns: Pattern | Sequence[Pattern], factors: Matrix | Sequence[Matrix]) -> KroneckerMatrix:
        """Return the matrix of one factor or of several, left-most first; arrays of the canonical layout (a, d, b, c).

        Raises:
            PlanError: as the class.
        """
        structure = KroneckerSparse.of(patterns)
        refuse_masks(factors=factors)
        given = [factors] if isinstance(factors, np.ndarray) else list(factors)
        if not given:
            raise PlanError("a Kronecker-sparse matrix needs the parameters of at least one factor")
        return cls(structure.patterns, tuple(map(np.ascontiguousarray, given)), dtype_of(given[0]))

    @classmethod
    def random(
        cls, patterns: Pattern | Sequence[Pattern], seed: int | np.random.Generator = 0, dtype: str = "float32"
    ) -> KroneckerMatrix:
        """Return random factors, see `KroneckerSparse.draw`."""
        structure = KroneckerSparse.of(patterns)
        return cls(structure.patterns, structure.draw(np.random.default_rng(seed), dtype), dtype)

    @property
    def structure(self) -> KroneckerSparse:
        return KroneckerSparse(self.patterns)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols) of W."""
        return self.structure.rows, self.structure.cols

    @property
    def adjoint(self) -> KroneckerMatrix:
        """Return W^H, with copies of the factors, conjugated and transposed, in reverse order."""
        factors = [np.ascontiguousarray(weights.conj().swapaxes(2, 3)) for weights in reversed(self.factors)]
        return KroneckerMatrix(self.structure.transposed.patterns, tuple(factors), self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of all parameters."""
        return sum(weights.nbytes for weights in self.factors)

    def astype(self, dtype: str) -> KroneckerMatrix:
        """Return the matrix with factors of another dtype, rounded to nearest.

        Raises:
            PlanError: imaginary parts would be lost, or the dtype is not supported.
        """
        if dtype not in DTYPES:
            raise PlanError(f"factors of {self.dtype} can't become {dtype}; choose one of {', '.join(DTYPES)}")
        if self.dtype.startswith("complex") and not dtype.startswith("complex"):
            raise PlanError(f"factors of {self.dtype} can't become {dtype}: imaginary parts would be lost")
        return KroneckerMatrix(
            self.patterns, tuple(converted(weights, self.dtype, dtype) for weights in self.factors), dtype
        )

    def dense(self) -> Matrix:
        """Return W (rows, cols), by the plain products of its dense factors."""
        return dense_product(self.factors, self.patterns)

    def __repr__(self) -> str:
        return f"<{self.structure.name} {self.shape[0]}x{self.shape[1]} {self.dtype}>"
