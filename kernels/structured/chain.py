"""Matrices that are stored as the factors of a product with Kronecker-sparse patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.display import line, table
from .blocks import Array, Matrix, apply_factors
from .naive import dense_factor, support
from .pattern import Pattern, check_composes

Shape = tuple[int, ...]


class FactorChain:
    """A matrix W (rows x cols) that is stored as the factors of a product K1 K2 ... KL; a `FactoredStructure`.

    Factors are Kronecker-sparse, left-most first. Their parameters are those (a, d, b, c) of the patterns, in the
    shapes `factor_shapes` of the subclass. Row i of W is row i of the product, or `block_order[i]` if `is_blocked`.
    """

    gain: ClassVar[float] = 1.0
    """Factors are drawn from U(+-sqrt(gain / c)), where c is the number of terms of a sum; 3 preserves the variance."""

    if TYPE_CHECKING:  # at run time a property would be the default of a dataclass's field of its name

        @property
        def patterns(self) -> tuple[Pattern, ...]: ...  # of the factors, left-most first
        @property
        def rows(self) -> int: ...
        @property
        def cols(self) -> int: ...

    @property
    def is_blocked(self) -> bool:
        """True if the rows of W are those of the product in the order (i, j, p) of the left-most factor's blocks."""
        return False

    @property
    def block_order(self) -> npt.NDArray[np.int64]:
        """For every row (i, j, p) in the order of blocks the row (i, p, j) of the product."""
        a, b, _, d = self.patterns[0].sizes
        return np.arange(a * b * d).reshape(a, b, d).swapaxes(1, 2).reshape(-1)

    @property
    def name(self) -> str:
        """The name of the structure, with its sizes."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """The text that `parse_structure` reads: the patterns, or a kind and its sizes."""
        return "".join(map(str, self.patterns))

    @property
    def factor_shapes(self) -> tuple[Shape, ...]:
        """See `FactoredStructure`: the shapes of the parameters, left-most factor first."""
        return tuple(pattern.parameter_shape for pattern in self.patterns)

    @property
    def factor_names(self) -> tuple[str, ...]:
        """The names of the factors in the state of a layer, left-most first."""
        return tuple(f"factors.{place}" for place in range(len(self.patterns)))

    def canonical(self, factors: Sequence[Array]) -> list[Array]:
        """Return the parameters (a, d, b, c) of all factors: views of contiguous ones."""
        return [one.reshape(pattern.parameter_shape) for one, pattern in zip(factors, self.patterns, strict=True)]

    def check_factors(self, factors: Sequence[Array]) -> None:
        """Raise PlanError unless factors have the number and the shapes of the structure's."""
        shapes = self.factor_shapes
        if not isinstance(factors, list | tuple) or len(factors) != len(shapes):
            raise PlanError(f"{self.name} needs a list of {len(shapes)} factors, left-most first, not {len(factors)}")
        for place, (weights, shape) in enumerate(zip(factors, shapes, strict=True), 1):
            if weights.shape != shape:
                raise PlanError(
                    f"factor {place} has shape {tuple(weights.shape)}, but {self.name} needs {shape}; reshape it, "
                    "or convert it with from_layout of lcma.kronecker or lcma.block_low_rank"
                )

    @property
    def parameters(self) -> int:
        """Number of parameters of all factors."""
        return sum(pattern.nonzeros for pattern in self.patterns)

    @property
    def density(self) -> float:
        """Parameters relative to the elements of W."""
        return self.parameters / (self.rows * self.cols)

    @property
    def extra_elements(self) -> int:
        """Number of elements by which the dense matrix exceeds the parameters."""
        return max(0, self.rows * self.cols - self.parameters)

    def flops(self, n: int) -> int:
        """Return the operations of W X for n columns: two for every parameter and column."""
        return 2 * n * self.parameters

    def reason(self, rows: int, cols: int) -> str | None:
        if (rows, cols) == (self.rows, self.cols):
            return None
        return f"is {self.name}, which is {self.rows} x {self.cols}, but it is {rows} x {cols}"

    def naive(self, matrix: Matrix) -> Matrix:
        """See `Structure`: zeros outside the support of a single factor; a product of several has no fixed zeros."""
        if len(self.patterns) > 1:
            return matrix
        return np.where(support(self.patterns[0]), matrix, np.zeros((), matrix.dtype))

    def draw(self, rng: np.random.Generator, dtype: str) -> tuple[Matrix, ...]:
        """See `FactoredStructure`: uniform, see `gain`; complex ones in both parts."""

        def drawn(pattern: Pattern, shape: Shape) -> Matrix:
            bound = (self.gain / pattern.c) ** 0.5
            values = rng.uniform(-bound, bound, shape)
            if dtype.startswith("complex"):
                values = values + 1j * rng.uniform(-bound, bound, shape)
            return values.astype(dtype)

        return tuple(map(drawn, self.patterns, self.factor_shapes))

    def dense(self, factors: Sequence[Array]) -> Array:
        """Return W (rows, cols), as the product of all factors and the dense right-most one."""
        *others, last = self.canonical(factors)
        product = apply_factors(others, self.patterns[:-1], dense_factor(last, self.patterns[-1]))
        return product[self.block_order] if self.is_blocked else product

    def multiply_wide(self, factors: Sequence[Matrix], x: Matrix) -> Matrix:
        """See `FactoredStructure`."""
        wide = np.complex128 if any(map(np.iscomplexobj, (*factors, x))) else np.float64
        product = apply_factors(self.canonical([one.astype(wide) for one in factors]), self.patterns, x.astype(wide))
        return product[self.block_order] if self.is_blocked else product

    @property
    def transposed(self) -> KroneckerSparse:
        """The structure of the transposed product."""
        return KroneckerSparse(tuple(pattern.transposed for pattern in reversed(self.patterns)))

    def transpose(self, factors: Sequence[Array]) -> tuple[FactorChain, list[Array], npt.NDArray[np.int64] | None]:
        """Return the structure and factors (views) of W^T, and the permutation of its inputs (None: the identity)."""
        return self.transposed, [one.swapaxes(2, 3) for one in reversed(self.canonical(factors))], None

    def as_table(self, title: str) -> str:
        """The factors as a table in HTML, left-most first: pattern, blocks and number of parameters."""
        rows = ((one, one.label, f"{one.nonzeros:,}") for one in self.patterns)
        return table(title, ("factor", "blocks", "parameters"), rows)

    def _repr_html_(self) -> str:
        """The factors as a table, for a notebook."""
        return self.as_table(f"{self.name}, {self.rows} x {self.cols}")


@dataclass(frozen=True)
class KroneckerSparse(FactorChain):
    """A matrix K1 K2 ... KL whose factors have these patterns, left-most first; parameters are (a, d, b, c).

    Raises:
        PlanError: neighbours do not compose.
    """

    patterns: tuple[Pattern, ...]
    singles: tuple[KroneckerSparse, ...] = field(init=False, compare=False)
    """The structures of the factors alone."""

    def __post_init__(self) -> None:
        check_composes(self.patterns)
        several = len(self.patterns) > 1
        singles = tuple(KroneckerSparse((pattern,)) for pattern in self.patterns) if several else (self,)
        object.__setattr__(self, "singles", singles)

    def __repr__(self) -> str:
        return line(self.name)

    @classmethod
    def of(cls, patterns: Pattern | Sequence[Pattern]) -> KroneckerSparse:
        """Return the structure of one pattern or of a list."""
        return cls((patterns,) if isinstance(patterns, Pattern) else tuple(patterns))

    @property
    def name(self) -> str:
        return f"Kronecker-sparse {''.join(map(str, self.patterns))}"

    @cached_property
    def rows(self) -> int:
        return self.patterns[0].rows

    @cached_property
    def cols(self) -> int:
        return self.patterns[-1].cols
