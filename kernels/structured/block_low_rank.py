"""The structures of block low-rank operands: low-rank, Monarch and BLAST matrices W (outputs x inputs)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError

Matrix = npt.NDArray[Any]
Shapes = tuple[tuple[int, ...], ...]

MAX_SIDE = 1 << 31
"""Maximum side of a matrix that a structure may describe."""


@dataclass(frozen=True)
class BlockLowRank:
    """A matrix W (rows x cols) that is stored as factors; a `FactoredStructure`. Subclasses are the structures.

    Raises:
        PlanError: a size is not a positive integer, blocks do not divide a side, or the rank exceeds its bound.
    """

    rows: int
    cols: int

    def __post_init__(self) -> None:
        for name, value in zip(self.__dataclass_fields__, self.sizes, strict=True):
            if name == "interleaved":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise PlanError(f"{name} of a {self.kind} matrix must be a positive integer, not {value!r}")
        if max(self.rows, self.cols) > MAX_SIDE:
            raise PlanError(f"a {self.kind} matrix of {self.rows} x {self.cols} has sides above {MAX_SIDE}")

    @property
    def kind(self) -> str:
        """The kind: low-rank, monarch or blast."""
        raise NotImplementedError

    @property
    def sizes(self) -> tuple[Any, ...]:
        """The integers that define the structure, in the order of the constructor."""
        return tuple(int(x) if isinstance(x, bool) else x for x in astuple(self))

    @property
    def factor_shapes(self) -> Shapes:
        """Shapes of the factors in the canonical layout, left-most first."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        return f"{self.kind} {self.rows}x{self.cols}"

    @property
    def parameters(self) -> int:
        """Number of parameters of all factors."""
        return sum(int(np.prod(shape)) for shape in self.factor_shapes)

    @property
    def extra_elements(self) -> int:
        """Number of elements by which the dense matrix exceeds the parameters."""
        return max(0, self.rows * self.cols - self.parameters)

    def flops(self, n: int) -> int:
        """Return the operations of W X for n columns: two for every parameter and column."""
        return 2 * n * self.parameters

    def intermediates(self) -> tuple[int, ...]:
        """Return for each stage but the last the number of elements that it writes per column of X."""
        raise NotImplementedError

    def fraction(self, rows: int, cols: int) -> float:
        """See `Structure`: every element of W is stored."""
        return 1.0

    def reason(self, rows: int, cols: int) -> str | None:
        """See `Structure`."""
        if (rows, cols) == (self.rows, self.cols):
            return None
        return f"is {self.name}, but it is {rows} x {cols}"

    def naive(self, matrix: Matrix) -> Matrix:
        """See `Structure`: no element of W is zero by structure."""
        return matrix

    def draw(self, rng: np.random.Generator, dtype: str) -> tuple[Matrix, ...]:
        """See `FactoredStructure`: uniform in +-sqrt(3 / terms): stages preserve the variance of their input."""
        found = []
        for shape in self.factor_shapes:
            bound = (3.0 / np.prod(shape[self._term_axes(shape) :])) ** 0.5
            found.append(rng.uniform(-bound, bound, shape).astype(dtype))
        return tuple(found)

    def _term_axes(self, shape: tuple[int, ...]) -> int:
        """Return the first axis of a factor that is summed over."""
        return len(shape) - 1

    def multiply_wide(self, factors: Sequence[Matrix], x: Matrix) -> Matrix:
        """See `FactoredStructure`."""
        wide = [weights.astype(np.float64) for weights in factors]
        return self._multiply(wide, x.astype(np.float64))

    def _multiply(self, factors: Sequence[Matrix], x: Matrix) -> Matrix:
        """Compute W x for x (cols, n), by sums over blocks without a dense matrix."""
        raise NotImplementedError


@dataclass(frozen=True)
class LowRank(BlockLowRank):
    """W = U V with factors U (rows, rank) and V (rank, cols)."""

    rank: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank > min(self.rows, self.cols):
            raise PlanError(f"rank {self.rank} exceeds the shorter side of {self.rows} x {self.cols}")

    @property
    def kind(self) -> str:
        return "low-rank"

    @property
    def factor_shapes(self) -> Shapes:
        return (self.rows, self.rank), (self.rank, self.cols)

    def intermediates(self) -> tuple[int, ...]:
        """See `BlockLowRank`."""
        return (self.rank,)

    def _multiply(self, factors: Sequence[Matrix], x: Matrix) -> Matrix:
        product: Matrix = factors[0] @ (factors[1] @ x)
        return product

    @property
    def name(self) -> str:
        return f"low-rank {self.rows}x{self.cols}, r {self.rank}"


@dataclass(frozen=True)
class _Blocked(BlockLowRank):
    """A structure with b1 blocks of p = cols / b1 inputs and b2 blocks of q = rows / b2 outputs."""

    b1: int
    b2: int
    rank: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cols % self.b1 or self.rows % self.b2:
            raise PlanError(
                f"b1 = {self.b1} must divide the {self.cols} inputs and b2 = {self.b2} the {self.rows} outputs"
            )

    @property
    def p(self) -> int:
        """Number of inputs of a block."""
        return self.cols // self.b1

    @property
    def q(self) -> int:
        """Number of outputs of a block."""
        return self.rows // self.b2

    @property
    def name(self) -> str:
        return f"{self.kind} {self.rows}x{self.cols}, b {self.b1}x{self.b2}, r {self.rank}"


@dataclass(frozen=True)
class Monarch(_Blocked):
    """Blocks W[k, l] = U[k, :, l] V[l, :, k] (q x p) of rank `rank` each, for k < b2 and l < b1.

    Factors: U (b2, q, b1, rank) and V (b1, rank, b2, p), rows of V in the order of the paper's (b1, r' b2, p).
    Output k q + i is row i of block k; with `interleaved` it is output i b2 + k, which makes W a Kronecker-sparse
    chain (1, q, b1 r', b2)(b1, b2 r', p, 1). The rank that the paper's Table 3 lists is `rank` times b1.

    Source: Dao et al. (2022), and Abillama et al., "Memory-Efficient Acceleration of Block Low-Rank Foundation Models
    on Resource Constrained GPUs", section 2.1.
    """

    interleaved: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.interleaved not in (0, 1):
            raise PlanError(f"interleaved must be True or False, not {self.interleaved!r}")
        object.__setattr__(self, "interleaved", bool(self.interleaved))
        if self.rank > min(self.p, self.q):
            raise PlanError(f"rank {self.rank} of a block exceeds the shorter side of {self.q} x {self.p}")

    @property
    def kind(self) -> str:
        return "monarch"

    @property
    def factor_shapes(self) -> Shapes:
        return (self.b2, self.q, self.b1, self.rank), (self.b1, self.rank, self.b2, self.p)

    def intermediates(self) -> tuple[int, ...]:
        """See `BlockLowRank`."""
        return (self.b1 * self.b2 * self.rank,)

    def _multiply(self, factors: Sequence[Matrix], x: Matrix) -> Matrix:
        left, right = factors
        inner = np.einsum("lskp,lpn->klsn", right, x.reshape(self.b1, self.p, -1), optimize=True)
        blocks = np.einsum("kqls,klsn->kqn", left, inner, optimize=True)
        blocks = blocks.swapaxes(0, 1) if self.interleaved else blocks
        return np.ascontiguousarray(blocks).reshape(self.rows, -1)

    def _term_axes(self, shape: tuple[int, ...]) -> int:
        return 2 if shape == self.factor_shapes[0] else 3


@dataclass(frozen=True)
class Blast(_Blocked):
    """Blocks W[k, l] = U[k] diag(S[:, k, l]) V[l] (q x p), for k < b2 and l < b1.

    Factors: U (b2, q, rank), S (rank, b2, b1) and V (b1, rank, p).

    Source: Lee et al., "BLAST: Block-Level Adaptive Structured Matrices for Efficient Deep Neural Network Inference"
    (NeurIPS 2024).
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank > min(self.rows, self.cols):
            raise PlanError(f"rank {self.rank} exceeds the shorter side of {self.rows} x {self.cols}")

    @property
    def kind(self) -> str:
        return "blast"

    @property
    def factor_shapes(self) -> Shapes:
        return (self.b2, self.q, self.rank), (self.rank, self.b2, self.b1), (self.b1, self.rank, self.p)

    def intermediates(self) -> tuple[int, ...]:
        """See `BlockLowRank`."""
        return self.b1 * self.rank, self.b2 * self.rank

    def _multiply(self, factors: Sequence[Matrix], x: Matrix) -> Matrix:
        left, scales, right = factors
        inner = np.einsum("lrp,lpn->lrn", right, x.reshape(self.b1, self.p, -1), optimize=True)
        mixed = np.einsum("rkl,lrn->krn", scales, inner, optimize=True)
        blocks = np.einsum("kqr,krn->kqn", left, mixed, optimize=True)
        return np.ascontiguousarray(blocks).reshape(self.rows, -1)
