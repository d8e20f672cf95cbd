"""Low-rank, Monarch and BLAST matrices W (outputs x inputs): chains of two or three Kronecker-sparse factors.

Their conversion is exact: the parameters are the same, reshaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...arguments import need, shown
from ...errors import PlanError
from .blocks import Array
from .chain import FactorChain, KroneckerSparse, Shape
from .layouts import shape_of
from .pattern import MAX_SIDE, Pattern, parse_patterns


@dataclass(frozen=True)
class BlockLowRank(FactorChain):
    """A matrix W (rows x cols) of blocks of low rank. Subclasses are the structures.

    W has b1 blocks of p = cols / b1 inputs and b2 blocks of q = rows / b2 outputs.

    Raises:
        PlanError: a size is not a positive integer, blocks do not divide a side, or the rank exceeds its bound.
    """

    gain: ClassVar[float] = 3.0
    kind: ClassVar[str]
    """The kind: low-rank, monarch or blast."""
    axes: ClassVar[dict[str, str]]
    """The axes of every factor, left-most first: k of b2, q, l of b1, p, and r of the rank."""

    rows: int
    cols: int

    if TYPE_CHECKING:  # fields of the subclasses, or constants

        @property
        def b1(self) -> int: ...
        @property
        def b2(self) -> int: ...
        @property
        def rank(self) -> int: ...

    def __post_init__(self) -> None:
        for name, value in zip((one.name for one in fields(self)), self.sizes, strict=True):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1 - (name == "interleaved"):
                raise PlanError(f"{name} of a {self.kind} matrix must be a positive integer, not {shown(value)}")
        if max(self.rows, self.cols) > MAX_SIDE:
            raise PlanError(f"a {self.kind} matrix of {self.rows} x {self.cols} has sides above {MAX_SIDE}")
        if self.cols % self.b1 or self.rows % self.b2:
            raise PlanError(
                f"b1 = {self.b1} must divide the {self.cols} inputs and b2 = {self.b2} the {self.rows} outputs"
            )
        of, m, n = (" of a block", self.q, self.p) if isinstance(self, Monarch) else ("", self.rows, self.cols)
        if self.rank > min(m, n):
            raise PlanError(f"rank {self.rank}{of} exceeds the shorter side of {m} x {n}")

    @property
    def sizes(self) -> tuple[Any, ...]:
        """The integers that define the structure, in the order of the constructor."""
        return tuple(int(x) if isinstance(x, bool) else x for x in astuple(self))

    @property
    def p(self) -> int:
        """Number of inputs of a block."""
        return self.cols // self.b1

    @property
    def q(self) -> int:
        """Number of outputs of a block."""
        return self.rows // self.b2

    @property
    def extents(self) -> dict[str, int]:
        """The size of every axis."""
        return {"k": self.b2, "q": self.q, "l": self.b1, "p": self.p, "r": self.rank}

    @cached_property
    def factor_shapes(self) -> tuple[Shape, ...]:
        return tuple(shape_of(axes, self.extents) for axes in self.axes.values())

    @property
    def factor_names(self) -> tuple[str, ...]:
        return tuple(self.axes)

    @property
    def text(self) -> str:
        return " ".join(map(str, (self.kind, *self.sizes)))

    @property
    def name(self) -> str:
        blocks = "" if isinstance(self, LowRank) else f", b {self.b1}x{self.b2}"
        return f"{self.kind} {self.rows}x{self.cols}{blocks}, r {self.rank}"

    def transpose(self, factors: Sequence[Array]) -> tuple[FactorChain, list[Array], npt.NDArray[np.int64] | None]:
        """See `FactorChain.transpose`: of the same kind.

        Inputs of the transpose of an interleaved Monarch matrix are outputs i b2 + k of W: in the order `block_order`
        they are those of a Monarch matrix whose outputs are not interleaved.
        """
        exchanged = (1, 3) if isinstance(self, Monarch) else (-2, -1)
        views = [one.swapaxes(*exchanged) for one in reversed(factors)]
        return self._of_transpose, views, self.block_order if isinstance(self, Monarch) and self.interleaved else None

    @cached_property
    def _of_transpose(self) -> FactorChain:
        blocks = () if isinstance(self, LowRank) else (self.b2, self.b1)
        return KINDS[self.kind](self.cols, self.rows, *blocks, self.rank)


@dataclass(frozen=True)
class LowRank(BlockLowRank):
    """W = U V with factors U (rows, rank) and V (rank, cols): the chain (1, rows, r, 1)(1, r, cols, 1)."""

    kind = "low-rank"
    axes: ClassVar[dict[str, str]] = {"U": "q r", "V": "r p"}
    b1 = b2 = 1
    rank: int

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        return Pattern(1, self.rows, self.rank, 1), Pattern(1, self.rank, self.cols, 1)


@dataclass(frozen=True)
class Monarch(BlockLowRank):
    """Blocks W[k, l] = U[k, :, l] V[l, :, k] (q x p) of rank `rank` each, for k < b2 and l < b1.

    Factors: U (b2, q, b1, rank) and V (b1, rank, b2, p), rows of V in the order of the paper's (b1, r' b2, p).
    Output k q + i is row i of block k; with `interleaved` it is output i b2 + k, which is the order of the chain
    (1, q, b1 r', b2)(b1, b2 r', p, 1). The rank that the paper's Table 3 lists is `rank` times b1.

    Source: Dao et al. (2022), and Abillama et al., "Memory-Efficient Acceleration of Block Low-Rank Foundation Models
    on Resource Constrained GPUs", section 2.1.
    """

    kind = "monarch"
    axes: ClassVar[dict[str, str]] = {"U": "k q l r", "V": "l r k p"}
    b1: int
    b2: int
    rank: int
    interleaved: bool = False

    def __post_init__(self) -> None:
        need(bool, interleaved=self.interleaved)
        if self.interleaved not in (0, 1):
            raise PlanError(f"interleaved must be True or False, not {self.interleaved!r}")
        object.__setattr__(self, "interleaved", bool(self.interleaved))
        super().__post_init__()

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        b1, b2, r = self.b1, self.b2, self.rank
        return Pattern(1, self.q, b1 * r, b2), Pattern(b1, b2 * r, self.p, 1)

    @property
    def is_blocked(self) -> bool:
        return not self.interleaved


@dataclass(frozen=True)
class Blast(BlockLowRank):
    """Blocks W[k, l] = U[k] diag(S[:, k, l]) V[l] (q x p), for k < b2 and l < b1.

    Factors: U (b2, q, rank), S (rank, b2, b1) and V (b1, rank, p): the chain (b2, q, r, 1)(1, b2, b1, r)(b1, r, p, 1).

    Source: Lee et al., "BLAST: Block-Level Adaptive Structured Matrices for Efficient Deep Neural Network Inference"
    (NeurIPS 2024).
    """

    kind = "blast"
    axes: ClassVar[dict[str, str]] = {"U": "k q r", "S": "r k l", "V": "l r p"}
    b1: int
    b2: int
    rank: int

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        b1, b2, r = self.b1, self.b2, self.rank
        return Pattern(b2, self.q, r, 1), Pattern(1, b2, b1, r), Pattern(b1, r, self.p, 1)


KINDS: dict[str, type[Any]] = {one.kind: one for one in (LowRank, Monarch, Blast)}
"""The structures by kind."""


@lru_cache(maxsize=1024)
def parse_structure(text: str) -> FactorChain:
    """Parse the text of a structure, see `FactorChain.text`.

    Raises:
        PlanError: the text is no structure.
    """
    if text.startswith("("):
        return KroneckerSparse(parse_patterns(text))
    kind, *sizes = text.split(" ")
    try:
        found: FactorChain = KINDS[kind](*map(int, sizes))
    except (KeyError, TypeError, ValueError):
        raise PlanError(f"{text[:60]!r} names no structure") from None
    return found


def block_low_rank_of(patterns: Sequence[Pattern]) -> BlockLowRank | None:
    """Return the low-rank, interleaved Monarch or BLAST structure that has these patterns; None if none has."""
    left, right = patterns[0], patterns[-1]
    rows, cols = left.rows, right.cols
    guess: tuple[type[BlockLowRank], tuple[int, ...]]
    if len(patterns) == 3:
        guess = Blast, (rows, cols, right.a, left.a, left.c)
    elif len(patterns) == 2 and left.d == right.a == 1:
        guess = LowRank, (rows, cols, left.c)
    elif len(patterns) == 2:
        guess = Monarch, (rows, cols, right.a, left.d, left.c // right.a, True)
    else:
        return None
    try:
        found = guess[0](*guess[1])
    except PlanError:  # the rank exceeds its bound, or blocks do not divide a side
        return None
    return found if found.patterns == tuple(patterns) else None
