"""The structure of a Kronecker-sparse operand: one factor, or the product of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .blocks import apply_factors
from .naive import support
from .pattern import Pattern, check_composes

Matrix = npt.NDArray[Any]


@dataclass(frozen=True)
class KroneckerSparse:
    """A matrix K1 K2 ... KL whose factors have these patterns, left-most first; a `Structure`.

    The operand is the tuple of the factors' parameters, each in the canonical layout (a, d, b, c).

    Raises:
        PlanError: neighbours do not compose.
    """

    patterns: tuple[Pattern, ...]

    def __post_init__(self) -> None:
        check_composes(self.patterns)

    @classmethod
    def of(cls, patterns: Pattern | Sequence[Pattern]) -> KroneckerSparse:
        """Return the structure of one pattern or of a list."""
        return cls((patterns,) if isinstance(patterns, Pattern) else tuple(patterns))

    @property
    def name(self) -> str:
        return f"Kronecker-sparse {''.join(map(str, self.patterns))}"

    @property
    def rows(self) -> int:
        return self.patterns[0].rows

    @property
    def cols(self) -> int:
        return self.patterns[-1].cols

    @property
    def parameters(self) -> int:
        """Number of parameters of all factors."""
        return sum(pattern.nonzeros for pattern in self.patterns)

    @property
    def density(self) -> float:
        """Parameters relative to the elements of the product."""
        return self.parameters / (self.rows * self.cols)

    @property
    def factor_shapes(self) -> tuple[tuple[int, ...], ...]:
        """See `FactoredStructure`."""
        return tuple(pattern.parameter_shape for pattern in self.patterns)

    @property
    def extra_elements(self) -> int:
        """Number of elements by which the dense matrix exceeds the parameters."""
        return max(0, self.rows * self.cols - self.parameters)

    @property
    def transposed(self) -> KroneckerSparse:
        """The structure of the transposed product."""
        return KroneckerSparse(tuple(pattern.transposed for pattern in reversed(self.patterns)))

    def fraction(self, rows: int, cols: int) -> float:
        """See `Structure`: the fraction inside the support of a single factor; 1 for a product of several."""
        return self.patterns[0].density if len(self.patterns) == 1 else 1.0

    def reason(self, rows: int, cols: int) -> str | None:
        """See `Structure`."""
        if (rows, cols) == (self.rows, self.cols):
            return None
        return f"is {self.name}, which is {self.rows} x {self.cols}, but it is {rows} x {cols}"

    def naive(self, matrix: Matrix) -> Matrix:
        """See `Structure`: zeros outside the support of a single factor; a product of several has no fixed zeros."""
        if len(self.patterns) > 1:
            return matrix
        return np.where(support(self.patterns[0]), matrix, np.zeros((), matrix.dtype))

    def draw(self, rng: np.random.Generator, dtype: str) -> tuple[Matrix, ...]:
        """See `FactoredStructure`: uniform in +-1/sqrt(c), the initialisation of layers; complex ones in both parts."""

        def drawn(pattern: Pattern) -> Matrix:
            bound = pattern.c**-0.5
            values = rng.uniform(-bound, bound, pattern.parameter_shape)
            if dtype.startswith("complex"):
                values = values + 1j * rng.uniform(-bound, bound, pattern.parameter_shape)
            return values.astype(dtype)

        return tuple(map(drawn, self.patterns))

    def multiply_wide(self, factors: Sequence[Matrix], x: Matrix) -> Matrix:
        """See `FactoredStructure`."""
        wide = np.complex128 if any(map(np.iscomplexobj, (*factors, x))) else np.float64
        return apply_factors([weights.astype(wide) for weights in factors], self.patterns, x.astype(wide))
