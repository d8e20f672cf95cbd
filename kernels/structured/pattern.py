"""Patterns of Kronecker-sparse matrices: the support I_a (x) 1_{b x c} (x) I_d, and chainable lists of them.

Products of chainable factors are characterised by the ranks of blocks: Le, Zheng, Riccietti, Gribonval, "Butterfly
Factorization with Error Guarantees" (arXiv 2411.04506), section 4.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from ...arguments import need, shown
from ...errors import PlanError

MAX_SIDE = 1 << 31
"""Maximum side of a matrix that a pattern may describe."""


@dataclass(frozen=True, order=True)
class Pattern:
    """The support I_a (x) 1_{b x c} (x) I_d of an abd x acd matrix K.

    K consists of a diagonal blocks; each is a b x c grid of diagonal d x d matrices. For each (i, j), i < a and
    j < d, the entries K[i b d + p d + j, i c d + q d + j] form a dense b x c block; a d such blocks make up K.

    Raises:
        PlanError: an entry is not a positive integer, or a side exceeds 2^31.

    Source: Gonon, Zheng, Carrivain, Le, "Fast Inference with Kronecker-Sparse Matrices" (ICML 2025), Definition 2.1.
    """

    a: int
    b: int
    c: int
    d: int

    def __post_init__(self) -> None:
        for name, value in zip("abcd", self.sizes, strict=True):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise PlanError(f"{name} of a Kronecker-sparse pattern must be a positive integer, not {shown(value)}")
        if max(self.rows, self.cols) > MAX_SIDE:
            raise PlanError(f"pattern {self} has sides {self.rows} x {self.cols}; at most {MAX_SIDE} is supported")

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Parse a pattern "a,b,c,d", with or without parentheses.

        Raises:
            PlanError: the text is no pattern.
        """
        match = re.fullmatch(r"\s*\(?\s*(\d{1,10})\s*,\s*(\d{1,10})\s*,\s*(\d{1,10})\s*,\s*(\d{1,10})\s*\)?\s*", text)
        if match is None:
            raise PlanError(f"{text[:60]!r} is not a Kronecker-sparse pattern; write four sizes, as (1,192,48,2)")
        a, b, c, d = map(int, match.groups())
        return cls(a, b, c, d)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """(a, b, c, d)."""
        return self.a, self.b, self.c, self.d

    @property
    def rows(self) -> int:
        return self.a * self.b * self.d

    @property
    def cols(self) -> int:
        return self.a * self.c * self.d

    @property
    def blocks(self) -> int:
        """Number of dense blocks (i, j)."""
        return self.a * self.d

    @property
    def label(self) -> str:
        """The number of blocks, if there are several, and their sizes."""
        return f"{self.blocks} blocks {self.b}x{self.c}" if self.blocks > 1 else f"{self.b}x{self.c}"

    @property
    def nonzeros(self) -> int:
        """Number of entries inside the support: parameters of a matrix."""
        return self.a * self.b * self.c * self.d

    @property
    def density(self) -> float:
        """The fraction of the entries inside the support: 1/(ad)."""
        return 1 / (self.a * self.d)

    @property
    def h(self) -> float:
        """(b + c)/(bc): elements of input and output per multiplication; the paper's heuristic, equation (4)."""
        return (self.b + self.c) / (self.b * self.c)

    @property
    def parameter_shape(self) -> tuple[int, int, int, int]:
        """The shape (a, d, b, c) of the parameters in the canonical layout: one dense b x c block for each (i, j)."""
        return self.a, self.d, self.b, self.c

    @property
    def transposed(self) -> Pattern:
        """The pattern of K^T."""
        return Pattern(self.a, self.c, self.b, self.d)

    def moved_elements(self, n: int) -> int:
        """Return the elements that a product of n columns reads and writes: parameters, input and result."""
        return self.nonzeros + (self.rows + self.cols) * n

    def __str__(self) -> str:
        return f"({self.a},{self.b},{self.c},{self.d})"


def parse_patterns(text: str) -> tuple[Pattern, ...]:
    """Parse a list of patterns "(a,b,c,d)(a,b,c,d)...", left-most factor first.

    Raises:
        PlanError: the text is no list of patterns.
    """
    parts = re.findall(r"\([^()]*\)", text) or [text]
    if re.sub(r"[\s,;]+", "", text) != re.sub(r"[\s,;]+", "", "".join(parts)):
        raise PlanError(f"{text[:60]!r} is not a list of patterns; write (1,192,48,2)(2,48,192,1)")
    return tuple(map(Pattern.parse, parts))


def check_composes(patterns: Sequence[Pattern]) -> None:
    """Check that the product of factors with these patterns, left-most first, exists.

    Raises:
        PlanError: there is no pattern, or two neighbours do not multiply.
    """
    need(tuple | list, patterns=patterns)
    for pattern in patterns:
        need(Pattern, pattern=pattern)
    if not patterns:
        raise PlanError("a Kronecker-sparse product needs at least one pattern")
    for place, (left, right) in enumerate(itertools.pairwise(patterns), 1):
        if left.cols != right.rows:
            raise PlanError(
                f"patterns {place} and {place + 1} do not compose: {left} has {left.cols} columns and {right} "
                f"has {right.rows} rows; list the factors of W = K1 K2 ... from left to right"
            )


def chain_rank(left: Pattern, right: Pattern) -> int | None:
    """Return r(left, right) = a1 c1 / a2 = b2 d2 / d1, the rank of the blocks of a product; None if not chainable.

    Two patterns are chainable if both quotients are the same integer, a1 divides a2 and d2 divides d1.
    """
    if right.a % left.a or left.d % right.d or left.a * left.c % right.a or right.b * right.d % left.d:
        return None
    rank = left.a * left.c // right.a
    return rank if rank == right.b * right.d // left.d else None


def product_pattern(left: Pattern, right: Pattern) -> Pattern:
    """Return the pattern (a1, b1 d1 / d2, a2 c2 / a1, d2) of a product of chainable factors."""
    return Pattern(left.a, left.b * left.d // right.d, right.a * right.c // left.a, right.d)


def chain_pattern(patterns: Sequence[Pattern]) -> Pattern:
    """Return the pattern of the whole product of a chainable list."""
    return reduce(product_pattern, patterns)


def chain_reason(patterns: Sequence[Pattern]) -> str | None:
    """Return the reason why a list is not chainable, with its first non-chainable neighbours, or None."""
    for left, right in itertools.pairwise(patterns):
        if chain_rank(left, right) is None:
            return f"{left}{right} is not chainable: a1 c1 / a2 and b2 d2 / d1 must be one integer, a1 | a2 and d2 | d1"
    return None
