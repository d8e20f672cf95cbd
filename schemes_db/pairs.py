"""Products of two structured matrices, named as in the literature: `ul`, `ss`, `gt`, each also with outputs left out.

A pair is two letters, the structures of A and B, or one letter and `t` for X X^T. The suffixes a, b
and c leave out C[0,0], C[m-1,n-1], or both. Indices count from 0 here.

Source: arXiv 2511.10786, whose files number the stored entries of each matrix (`stored_places`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from ..errors import TargetError
from .grids import Kind, Kinds, full_grid, mirrored_grid, triangular_grid
from .terms import MAX_ENTRIES, Entries, checked_entries

Shape = tuple[int, int, int]

LETTERS = "gulskw"
"""General, upper and lower triangular, symmetric, skew-symmetric, skew-symmetric with a free diagonal."""

SCALAR_LETTERS = frozenset("skw")
"""Structures that identify A[i,j] with A[j,i]: exact for scalars, wrong for blocks that are matrices."""

_OMITTED = {"": (), "a": (0,), "b": (-1,), "c": (0, -1)}


@dataclass(frozen=True)
class Pair:
    """The structures of A and B (`right` is "t" where B = A^T), and the corners of C that are left out."""

    left: str
    right: str
    omitted: str = ""

    @property
    def name(self) -> str:
        return f"{self.left}{self.right}{self.omitted}"

    @property
    def gram(self) -> bool:
        """True if the product is X X^T."""
        return self.right == "t"

    @property
    def scalars_only(self) -> bool:
        """True if the identity of blocks would be wrong for blocks that are matrices."""
        return bool(SCALAR_LETTERS & {self.left, self.right})

    @property
    def upper_outputs(self) -> bool:
        """True if only the upper triangle of C is computed."""
        return self.gram or (self.left, self.right) == ("u", "u")


def parse_pair(form: str) -> Pair | None:
    """The pair of a form such as `ul`, `gt` or `ssc`; None for any other form."""
    match = re.fullmatch(rf"([{LETTERS}])([{LETTERS}t])([abc]?)", form)
    return Pair(*match.groups()) if match else None


def all_pairs() -> Iterator[Pair]:
    """Every pair, those without a suffix first."""
    for suffix in _OMITTED:
        for left, right in product(LETTERS, f"{LETTERS}t"):
            yield Pair(left, right, suffix)


def fits(pair: Pair, shape: Shape) -> bool:
    """Return whether the sizes (m, k, n) allow the pair: structured matrices are square, and X X^T has m = n."""
    m, k, n = shape
    square_a, square_b = pair.left == "g" or m == k, pair.gram or pair.right == "g" or k == n
    return square_a and square_b and (not pair.gram or m == n)


@dataclass(frozen=True)
class PairGrids:
    """The parts of a target: the kinds of A, B and C, whether B = A^T, and the terms where scalars only."""

    a: Kinds
    b: Kinds
    c: Kinds
    shared: bool
    entries: Entries | None


@lru_cache(maxsize=64)
def grids_of(pair: Pair, shape: Shape) -> PairGrids:
    """The grids of a pair's target.

    A pair of general and triangular matrices is a product of blocks. With a symmetric or skew matrix
    it is a sum of terms over the stored entries, which stand at their place in the upper triangle.

    Raises:
        TargetError: the sizes do not allow the pair, or nothing is left to compute.
    """
    m, k, n = shape
    if not fits(pair, shape):
        raise TargetError(f"target {m}x{k}x{n}:{pair.name}: structured matrices must be square, and X X^T has m = n")
    c = _without(_outputs(pair, m, n), pair.omitted)
    if not any(kind is not Kind.ABSENT for row in c for kind in row):
        raise TargetError(f"target {m}x{k}x{n}:{pair.name} leaves out every output")
    a = _operand_grid(pair.left, m, k)
    if not pair.scalars_only:
        b = mirrored_grid(a) if pair.gram else _operand_grid(pair.right, k, n)
        return PairGrids(a, b, c, pair.gram and not pair.omitted, None)
    if m * k * n > 8 * MAX_ENTRIES:
        raise TargetError(f"target {m}x{k}x{n}:{pair.name} has more than {MAX_ENTRIES} terms")
    # Both factors of X X^T number the entries of one X: B[l,j] is X[j,l], which stands where A has it.
    b = a if pair.gram else _operand_grid(pair.right, k, n)
    entries = checked_entries(_entries(pair, shape, c))
    a, b, c = (tuple(tuple(_present(kind) for kind in row) for row in grid) for grid in (a, b, c))
    return PairGrids(a, b, c, False, entries)


def stored_places(pair: Pair, shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """For A, B and C the flat place, on the target's grids, of every entry in the order that files number them.

    Symmetric, skew and triangular matrices are packed by the rows of their upper triangle, a lower
    one by those of its transpose. Outputs are the packed upper triangle for `uu` and X X^T, else all of C.
    """
    m, k, n = shape
    a = _packed(pair.left, m, k)
    if not pair.gram:
        b = _packed(pair.right, k, n)
    elif pair.scalars_only:
        b = a
    else:
        b = tuple(place % k * n + place // k for place in a)
    return a, b, _packed("u", m, n) if pair.upper_outputs else _packed("g", m, n)


def _packed(letter: str, rows: int, cols: int) -> tuple[int, ...]:
    if letter == "g":
        return tuple(range(rows * cols))
    upper = [(i, j) for i in range(rows) for j in range(i + (letter == "k"), cols)]
    return tuple(j * cols + i if letter == "l" else i * cols + j for i, j in upper)


def _operand_grid(letter: str, rows: int, cols: int) -> Kinds:
    """The kinds of an operand's blocks; those of a symmetric or skew one where its entries are stored."""
    if letter == "g":
        return full_grid(rows, cols)
    if letter in "ul":
        return triangular_grid(rows, upper=letter == "u")
    stored = set(_packed(letter, rows, cols))
    kinds = [Kind.FULL if place in stored else Kind.ABSENT for place in range(rows * cols)]
    return tuple(tuple(kinds[i * cols : (i + 1) * cols]) for i in range(rows))


def _outputs(pair: Pair, m: int, n: int) -> Kinds:
    if pair.upper_outputs:
        return triangular_grid(m, upper=True)
    return triangular_grid(m) if (pair.left, pair.right) == ("l", "l") else full_grid(m, n)


def _without(grid: Kinds, omitted: str) -> Kinds:
    rows = [list(row) for row in grid]
    for corner in _OMITTED[omitted]:
        rows[corner][corner] = Kind.ABSENT
    return tuple(map(tuple, rows))


def _present(kind: Kind) -> Kind:
    """A half block of scalars is a full one."""
    return Kind.ABSENT if kind is Kind.ABSENT else Kind.FULL


def _entry(letter: str, i: int, j: int) -> tuple[int, int, int]:
    """(row, column, sign) of the stored entry that A[i,j] is; sign 0 where A[i,j] is zero."""
    if letter == "g" or (letter == "u" and i <= j) or (letter == "l" and i >= j):
        return i, j, 1
    if letter in "ul" or (letter == "k" and i == j):
        return i, j, 0
    return (i, j, 1) if i <= j else (j, i, 1 if letter == "s" else -1)


def _entries(pair: Pair, shape: Shape, c: Kinds) -> Iterator[tuple[int, int, int, int]]:
    m, k, n = shape
    for i, l, j in product(range(m), range(k), range(n)):
        if c[i][j] is Kind.ABSENT:
            continue
        row_a, col_a, sign_a = _entry(pair.left, i, l)
        row_b, col_b, sign_b = _entry(pair.left, j, l) if pair.gram else _entry(pair.right, l, j)
        if sign_a and sign_b:
            yield row_a * k + col_a, row_b * n + col_b, i * n + j, sign_a * sign_b
