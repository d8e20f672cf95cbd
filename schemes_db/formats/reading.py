"""The result of a format's reader, and the checks shared by all readers."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import SchemeFormatError
from ..certificate import Certificate
from ..display import line
from ..factor import Factor, IntArray, integer_array
from ..gaussian import MAX_BITS, Gaussian, Number, bits, gaussian, parse_number, simplest
from ..inexact import Approximation, Coefficient, Inexact, Row, inexact
from ..ring import QI, Q, Ring, Z
from ..scheme import MAX_RANK, Scheme
from ..target import Target
from .linear_program import BilinearPrograms

C = "C"
C_TRANSPOSED = "C^T"
PRIME = (1 << 31) - 1


class UnknownFormatError(SchemeFormatError):
    """A file in which nothing looks like a scheme of any known format."""

    def located(self, file: str | Path) -> SchemeFormatError:
        """The same error with the file named."""
        return UnknownFormatError(self.message, file, self.line)


@dataclass(frozen=True)
class Wanted:
    """What a file is read as: a format by its name, and the target and the ring that the user, or the file, says."""

    format: str
    target: Target | None = None
    ring: Ring | None = None
    allow_pickle: bool = False
    name: str = ""
    """The name of the scheme, where the file says one."""


@dataclass(frozen=True)
class Reading:
    """One scheme as a file gives it, before it is verified.

    `candidates` are (convention, scheme) pairs: what the file says if its third factor is indexed
    by C, or by the transpose of C; the format's documented convention first. Which one computes
    the target only verification can tell. `declared` is the ring that the
    file or the user says: it binds. A file with coefficients that are not exact gives
    `approximations` instead, one of straight-line programs that are too long to be expanded `programs`.
    `alternatives` are what the file says as another target than the one asked for: never a verdict, only a
    hint. `doubt` says why the file may be no scheme at all: where nothing holds, it is refused.
    """

    format: str
    candidates: tuple[tuple[str, Scheme], ...]
    approximations: tuple[tuple[str, Approximation], ...] = field(default=(), kw_only=True)
    programs: BilinearPrograms | None = field(default=None, kw_only=True)
    declared: Ring | None = field(default=None, kw_only=True)
    certificate: Certificate | None = None
    notes: tuple[str, ...] = field(default=())
    alternatives: tuple[tuple[str, Scheme], ...] = field(default=(), kw_only=True)
    doubt: str = field(default="", kw_only=True)

    def __repr__(self) -> str:
        what = [scheme.label for _, scheme in self.candidates[:1]] or ["coefficients that are not exact, or programs"]
        return line(f"reading {self.format} {what[0]}")

    def noting(self, *notes: str) -> Reading:
        """The same reading with more notes; empty ones say nothing."""
        return dataclasses.replace(self, notes=(*self.notes, *filter(None, notes)))

    def fitting(self, ranks: Set[int], shapes: Set[tuple[int, ...]]) -> Reading:
        """The same reading by what has the ranks and the sizes, in any order, that its file says.

        Raises:
            SchemeFormatError: nothing has.
        """

        def fits(one: tuple[str, Scheme | Approximation]) -> bool:
            sizes = sorted(one[1].target.shape)
            return ranks <= {one[1].rank} and all(sorted(shape) == sizes for shape in shapes)

        exact, rounded = tuple(filter(fits, self.candidates)), tuple(filter(fits, self.approximations))
        if not exact and not rounded and self.programs is None:
            known = ", ".join(sorted({one.label for _, one in self.candidates}))
            said = ", ".join([*(f"rank {one}" for one in ranks), *("x".join(map(str, one)) for one in shapes)])
            raise SchemeFormatError(
                f"another rank or other sizes are said, but the factors are of {known}, not of {said}"
            )
        return dataclasses.replace(self, candidates=exact, approximations=rounded)

    @property
    def scheme(self) -> Scheme:
        """The scheme by the format's documented convention.

        Raises:
            SchemeFormatError: the coefficients are not exact, or the programs are not expanded.
        """
        if self.programs is not None:
            raise SchemeFormatError("straight-line programs whose sums are too long to be expanded: no scheme")
        if not self.candidates:
            raise SchemeFormatError("coefficients are rounded, or have powers of an infinitesimal: no exact scheme")
        return self.candidates[0][1]


@contextlib.contextmanager
def on_line(line: int) -> Iterator[None]:
    """Name the line of the file in faults: those of a parser know the line within its text alone."""
    try:
        yield
    except SchemeFormatError as error:
        raise SchemeFormatError(error.message, error.file, line) from None


def parse_coefficient(value: object, where: str) -> Number:
    """An integer, or a string such as "1/2" or "1/2-3i", as an exact number.

    Raises:
        SchemeFormatError: anything else, floats and booleans included.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        with contextlib.suppress(ValueError, ZeroDivisionError):
            return parse_number(value)
        if named := re.search(r"[A-Za-z]\w*(?:\([^()]*\))?", value):
            raise SchemeFormatError(f"{where}: the parameter {named.group()[:20]} is no exact fraction")
    raise SchemeFormatError(f'{where}: {value!r} is not a coefficient; write an integer or "p/q"')


def render_coefficient(value: Number) -> int | str:
    """Return a value that `parse_coefficient` reads back: an integer if it is one, else text."""
    simple = simplest(value)
    return simple if isinstance(simple, int) else str(simple)


@dataclass(frozen=True, eq=False)
class Entries:
    """The given entries of a factor: of each the product, the row and the column from 0, and the coefficient."""

    rank: int
    product: IntArray
    row: IntArray
    col: IntArray
    values: Sequence[Coefficient]

    @classmethod
    def of(cls, products: Sequence[Sequence[tuple[Any, ...]]], width: int = 0) -> Entries:
        """The entries of products: (row, column, coefficient), or (flat index, coefficient) on a grid of a width."""
        flat = [term for terms in products for term in terms]
        *places, values = zip(*flat, strict=True) if flat else ((), (), ())
        row, *rest = (np.array(part, dtype=np.int64) for part in places)
        row, col = (row, *rest) if rest else divmod(row, width)
        product = np.repeat(np.arange(len(products), dtype=np.int64), list(map(len, products)))
        return cls(len(products), product, row, col, values)

    @classmethod
    def of_forms(
        cls, forms: Sequence[Mapping[Any, Coefficient]], places: Mapping[Any, tuple[int, ...]], base: int
    ) -> Entries:
        """The entries of forms, by the place of each key, counted from a base; the column of a running index is 0."""
        at = {key: (index[0] - base, index[-1] - base if len(index) > 1 else 0) for key, index in places.items()}
        return cls.of([[(*at[key], value) for key, value in form.items()] for form in forms])

    @property
    def extent(self) -> tuple[int, int]:
        """The rows and columns of the smallest grid that holds every entry."""
        return int(self.row.max(initial=-1)) + 1, int(self.col.max(initial=-1)) + 1

    @property
    def places(self) -> set[tuple[int, int]]:
        return set(zip(self.row.tolist(), self.col.tolist(), strict=True))

    @property
    def inexact(self) -> bool:
        """True if some coefficient is rounded, or has a power of an infinitesimal."""
        return Inexact in set(map(type, self.values))

    @cached_property
    def residues(self) -> IntArray:
        """The coefficients modulo PRIME, real parts of exact ones; 0 where PRIME divides a denominator."""
        return np.array([x % PRIME if type(x) is int else _residue(x) for x in self.values], dtype=np.int64)

    def transposed(self) -> Entries:
        return dataclasses.replace(self, row=self.col, col=self.row)

    def rounded(self, width: int) -> tuple[Row, ...]:
        """The flat index on a grid of this width and the coefficient of every entry, product by product."""
        found: list[list[tuple[int, Inexact]]] = [[] for _ in range(self.rank)]
        indices = (self.row * width + self.col).tolist()
        for r, index, value in zip(self.product.tolist(), indices, self.values, strict=True):
            if value:
                found[r].append((index, inexact(value)))
        return tuple(map(tuple, found))


def _residue(value: Coefficient) -> int:
    real = value.real if isinstance(value, Gaussian) else Fraction(0 if isinstance(value, Inexact) else value)
    return real.numerator * pow(real.denominator, -1, PRIME) % PRIME if real.denominator % PRIME else 0


def places_on(entries: Entries, rows: int, cols: int, label: str) -> IntArray:
    """The flat places of entries on a grid.

    Raises:
        SchemeFormatError: a place outside the grid or given twice, or too many products.
    """
    rank, product = entries.rank, entries.product
    if not 1 <= rank <= MAX_RANK:
        raise SchemeFormatError(f"a scheme has 1 to {MAX_RANK} products, not {rank}")
    inside = (entries.row >= 0) & (entries.row < rows) & (entries.col >= 0) & (entries.col < cols)
    places = np.where(inside, entries.row * cols + entries.col, -1)
    if len(places) and places.min() < 0:
        at = int(np.argmin(places))
        block = f"[{entries.row[at] + 1},{entries.col[at] + 1}]"
        raise SchemeFormatError(
            f"product {product[at] + 1}: {label} has block {block}, outside its {rows} x {cols} grid"
        )
    keys = product * (rows * cols) + places
    if not (np.diff(keys) > 0).all() and len(twice := np.flatnonzero(np.diff(np.sort(keys)) == 0)):
        r, index = divmod(int(np.sort(keys)[twice[0]]), rows * cols)
        raise SchemeFormatError(f"product {r + 1}: {label} has block [{index // cols + 1},{index % cols + 1}] twice")
    return places


def factor_of(entries: Entries, rows: int, cols: int, label: str) -> Factor:
    """The factor of entries on a grid, over their least common denominator.

    Raises:
        SchemeFormatError: as `places_on`; a number too large.
    """
    places = places_on(entries, rows, cols, label)
    denominator = 1
    if set(map(type, entries.values)) <= {int}:
        values = integer_array(entries.values)  # type: ignore[arg-type]  # all are int
    elif entries.inexact:
        raise SchemeFormatError(f"{label} has a coefficient that is rounded, or has a power of an infinitesimal")
    else:
        # Every numerator grows to the common denominator; real and imaginary parts follow each other.
        numbers = map(gaussian, entries.values)  # type: ignore[arg-type]  # none is Inexact
        pairs = [part for number in numbers for part in (number.real, number.imag)]
        denominator = math.lcm(*{part.denominator for part in pairs})
        if bits(denominator) > MAX_BITS:
            raise SchemeFormatError(f"{label} has a common denominator beyond 2^{MAX_BITS}")
        values = integer_array([int(part * denominator) for part in pairs], denominator).reshape(-1, 2)
    return Factor.from_triplets(entries.rank, rows, cols, entries.product, places, values, denominator)


def ring_of(factors: Iterable[Factor]) -> Ring:
    """Z, Q where a factor has a denominator, Q(i) where one has an imaginary part."""
    factors = tuple(factors)
    if any(factor.gaussian for factor in factors):
        return QI
    return Q if any(factor.denominator != 1 for factor in factors) else Z
