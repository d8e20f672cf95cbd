"""The bilinear map that a scheme computes: a grid and, for every block, its kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from ..arguments import INTEGER, need
from ..errors import TargetError, did_you_mean
from .display import line
from .grids import (
    KINDS,
    LETTERS,
    Kind,
    Kinds,
    band_grid,
    cut_grid,
    full_grid,
    mirrored_grid,
    prefix_grid,
    reversed_grid,
    tensor_grid,
    triangular_grid,
    window_grid,
)
from .mask_files import read_mask
from .pairs import Pair, all_pairs, fits, grids_of, parse_pair
from .terms import Entries, brief, checked_entries, grid_for, named, parse_terms, read_tensor

IntArray = npt.NDArray[np.int64]

MAX_DIMENSION = 128
"""The largest m, k or n of a grid: bounds what a file's header can make us allocate."""


KEPT_TERMS = 1 << 12
"""The most terms of a general target that is made once and kept."""


@dataclass(frozen=True)
class Target:
    """C = A B on an m x k x n grid of blocks, with the kind of every block of A, B and C.

    A block that is ABSENT in A or B is zero; one that is ABSENT in C is not wanted. A LOWER or
    UPPER block of A or B is itself triangular; of a LOWER or UPPER block of C only that triangle
    (with its diagonal) is wanted. All general, triangular and masked products are of this form.

    `shared` says that B is A^T, of whose product one triangle is wanted (`gram`). With `entries` the
    map is no product of matrices but the sum of these terms (`terms`), the grid is only where its
    blocks are laid out, and nobody knows what it means for blocks: `block_recursive` is False, and
    no executor takes it.
    """

    m: int
    k: int
    n: int
    a: Kinds
    b: Kinds
    c: Kinds
    block_recursive: bool = True
    shared: bool = False
    entries: Entries | None = None

    def __post_init__(self) -> None:
        need(INTEGER, m=self.m, k=self.k, n=self.n)
        need(tuple, a=self.a, b=self.b, c=self.c)
        need(bool, block_recursive=self.block_recursive, shared=self.shared)
        for size in (self.m, self.k, self.n):
            if not 1 <= size <= MAX_DIMENSION:
                raise TargetError(f"grid {self.m}x{self.k}x{self.n}: each of m, k, n must be 1 to {MAX_DIMENSION}")
        shapes = {"A": (self.a, self.m, self.k), "B": (self.b, self.k, self.n), "C": (self.c, self.m, self.n)}
        for operand, (grid, rows, cols) in shapes.items():
            if len(grid) != rows or any(len(row) != cols for row in grid):
                raise TargetError(f"the kinds of {operand} must be a {rows} x {cols} grid")
        if self.shared and (
            self.entries is not None
            or self.b != mirrored_grid(self.a)
            or self.c not in (triangular_grid(self.m), triangular_grid(self.m, upper=True))
        ):
            raise TargetError("a target with B = A^T has the grids of A mirrored in B and a triangular C")
        if self.entries is not None and self.block_recursive:
            raise TargetError("a target given term by term is exact for scalars only: set block_recursive to False")

    @classmethod
    def general(cls, m: int, k: int, n: int) -> Target:
        """The plain matrix product <m,k,n>."""
        sizes = _checked_sizes(m, k, n)
        return _general(*sizes) if m * k * n <= KEPT_TERMS else _general.__wrapped__(*sizes)

    @classmethod
    def of_pair(cls, pair: Pair, shape: tuple[int, int, int]) -> Target:
        """The product of two structured matrices of the literature (see `pairs`).

        Raises:
            TargetError: the sizes do not allow it.
        """
        sizes = _checked_sizes(*shape)
        made = grids_of(pair, sizes)
        return cls(*sizes, made.a, made.b, made.c, made.entries is None, made.shared, made.entries)

    @classmethod
    def of_terms(cls, entries: Iterable[tuple[int, ...]], shape: tuple[int, int, int] | None = None) -> Target:
        """The map of terms (p, q, s, value), flat places from 0, on the given grid or the smallest with room for it.

        Blocks that no term names are absent.

        Raises:
            TargetError: not terms, or they do not fit the grid.
        """
        terms = checked_entries(entries)
        m, k, n = _checked_sizes(*(shape or grid_for(terms, MAX_DIMENSION)))
        grids: list[Kinds] = []
        for slot, (rows, cols) in enumerate(((m, k), (k, n), (m, n))):
            used = {entry[slot] for entry in terms}
            if max(used) >= rows * cols:
                raise TargetError(f"place {max(used) + 1} of {'ABC'[slot]} is outside its {rows} x {cols} grid")
            kinds = [Kind.FULL if place in used else Kind.ABSENT for place in range(rows * cols)]
            grids.append(tuple(tuple(kinds[i * cols : (i + 1) * cols]) for i in range(rows)))
        return cls(m, k, n, grids[0], grids[1], grids[2], block_recursive=False, entries=terms)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.m, self.k, self.n

    @cached_property
    def name(self) -> str:
        """The name that `parse_target` reads back as this target."""
        base = f"{self.m}x{self.k}x{self.n}"
        if self.entries is not None:
            pair = pair_of(self)
            return f"{base}:{pair.name if pair else named(self.entries)}"
        if self == Target.general(*self.shape):
            return base
        grids = (self.a, self.b, self.c)
        forms: dict[int, str] = {}
        for form in _forms(self.shape):
            role, grid = _placed(self.shape, form) or (0, None)
            if grid == grids[role] and any(kind is not Kind.FULL for row in grid for kind in row):
                forms.setdefault(role, form)
        if self.shared:  # which says all of B
            forms = {0: forms.get(0, ""), 2: forms[2].replace(_TRIANGULAR[2], GRAM)}
        joined = "+".join(form for _, form in sorted(forms.items()) if form)
        if joined and self == _formed(self.shape, joined):
            return f"{base}:{joined}"
        if pair := pair_of(self):
            return f"{base}:{pair.name}"
        written = ",".join("/".join("".join(LETTERS[kind] for kind in row) for row in grid) for grid in grids)
        return f"{base}:blocks({written})"

    def __repr__(self) -> str:
        return line(f"target {self}")

    def __str__(self) -> str:
        """The name for people: that of a map given term by term says how many there are, and not which."""
        if self.entries is None or "(" not in self.name:
            return self.name
        return f"{self.m}x{self.k}x{self.n}:{brief(self.entries)}"

    @property
    def is_product(self) -> bool:
        """True if it is a product of matrices, parts of which may be left out, and not any other bilinear map."""
        return self.entries is None

    @cached_property
    def is_general(self) -> bool:
        return self.is_product and all(
            kind is Kind.FULL for grid in (self.a, self.b, self.c) for row in grid for kind in row
        )

    @cached_property
    def kind_arrays(self) -> tuple[IntArray, IntArray, IntArray]:
        """The kinds of A (m, k), B (k, n) and C (m, n) as integer arrays."""
        return _as_array(self.a), _as_array(self.b), _as_array(self.c)

    @cached_property
    def equations(self) -> int:
        """The number of Brent equations: one for each triple of present blocks of A, B and C."""
        a, b, c = (int((kinds != Kind.ABSENT).sum()) for kinds in self.kind_arrays)
        return a * b * c

    @cached_property
    def terms(self) -> IntArray:
        """The nonzeros of the target tensor, (T, 3): flat indices of blocks of A, B and C.

        Sorted, so terms with the same A block stand together; `term_values` has their coefficients.
        """
        if self.entries is not None:
            return np.array([entry[:3] for entry in self.entries], dtype=np.int64)
        a, b, c = (kinds != Kind.ABSENT for kinds in self.kind_arrays)
        i, l, j = np.nonzero(a[:, :, None] & b[None, :, :] & c[:, None, :])
        return np.stack([i * self.k + l, l * self.n + j, i * self.n + j], axis=1).astype(np.int64)

    @cached_property
    def term_values(self) -> IntArray:
        """The coefficient of every term, (T,): all 1 for a product of matrices."""
        if self.entries is None:
            return np.ones(len(self.terms), dtype=np.int64)
        return np.array([entry[3] for entry in self.entries], dtype=np.int64)

    @cached_property
    def coefficients(self) -> dict[tuple[int, ...], int]:
        """The coefficient of every term, by flat indices of blocks of A, B and C."""
        return dict(zip(map(tuple, self.terms.tolist()), self.term_values.tolist(), strict=True))

    def wanted(self, p: int, q: int, s: int) -> int:
        """The coefficient of A[p] B[q] in C[s], by flat indices."""
        return int(self.term_values[(self.terms == (p, q, s)).all(axis=1)].sum())

    def _moved(self, shape: tuple[int, int, int], order: tuple[int, int, int], turned: tuple[bool, ...]) -> Target:
        """The map whose operands A, B, C are those of `order`, the grids of some of them transposed."""
        grids = ((self.m, self.k), (self.k, self.n), (self.m, self.n))
        columns = []
        for source, turn in zip(order, turned, strict=True):
            row, col = np.divmod(self.terms[:, source], grids[source][1])
            columns.append(col * grids[source][0] + row if turn else self.terms[:, source])
        return Target.of_terms(zip(*(column.tolist() for column in (*columns, self.term_values)), strict=True), shape)

    def transposed(self) -> Target:
        """The target of C^T = B^T A^T."""
        if self.entries is not None:
            return self._moved((self.n, self.k, self.m), (1, 0, 2), (True, True, True))
        return Target(
            self.n,
            self.k,
            self.m,
            mirrored_grid(self.b),
            mirrored_grid(self.a),
            mirrored_grid(self.c),
            self.block_recursive,
            self.shared,
        )

    def rotated(self) -> Target:
        """The target after one cyclic step of the roles in tr(A B D), D dual to C: (A, B, D) -> (B, D, A).

        That B is A^T is forgotten: no form says it of other roles.
        """
        if self.entries is not None:
            return self._moved((self.k, self.n, self.m), (1, 2, 0), (False, True, True))
        return Target(
            self.k, self.n, self.m, self.b, mirrored_grid(self.c), mirrored_grid(self.a), self.block_recursive
        )

    def reversed(self) -> Target:
        """The target with every index order reversed: lower and upper change places."""
        if self.entries is not None:
            last = (self.m * self.k - 1, self.k * self.n - 1, self.m * self.n - 1)
            moved = [(*(end - x for end, x in zip(last, entry, strict=False)), entry[3]) for entry in self.entries]
            return Target.of_terms(moved, self.shape)
        return Target(
            self.m,
            self.k,
            self.n,
            reversed_grid(self.a),
            reversed_grid(self.b),
            reversed_grid(self.c),
            self.block_recursive,
            self.shared,
        )

    def orbit(self) -> tuple[Target, ...]:
        """All that rotation, transposition and reversal make of it, itself first: 12 at most, which share schemes."""
        found = [self]
        for known in found:  # grows while it is walked
            for made in (known.rotated(), known.transposed(), known.reversed()):
                if made not in found:
                    found.append(made)
        return tuple(found)

    def tensor(self, inner: Target) -> Target:
        """The target of this grid with every block cut by the grid of `inner`.

        Raises:
            TargetError: this target has half blocks, whose inner cut is not one and the same grid, or one
                of the two is given term by term.
        """
        if not (self.is_product and inner.is_product):
            raise TargetError(f"{self} and {inner}: a map given term by term has no tensor product here")
        if any(kind.half for grid in (self.a, self.b, self.c) for row in grid for kind in row):
            raise TargetError(f"{self.name} has half blocks: a tensor product needs full or absent outer blocks")
        sizes = _checked_sizes(self.m * inner.m, self.k * inner.k, self.n * inner.n)
        a, b, c = tensor_grid(self.a, inner.a), tensor_grid(self.b, inner.b), tensor_grid(self.c, inner.c)
        return Target(*sizes, a, b, c, self.block_recursive and inner.block_recursive)

    def cut(self, rows: int, inner: int, cols: int) -> Target:
        """The target of this grid with the blocks of A cut into rows x inner, those of C into rows x cols.

        Raises:
            TargetError: a half block would be cut into unlike rows and columns, or the map is given term by term.
        """
        if not self.is_product:
            raise TargetError(f"{self} is given term by term and has no grid to be cut")
        sides = ((self.a, rows, inner), (self.b, inner, cols), (self.c, rows, cols))
        for grid, tall, wide in sides:
            if tall != wide and any(kind.half for row in grid for kind in row):
                raise TargetError(f"{self} has half blocks, which can't be cut into {tall} x {wide}")
        sizes = _checked_sizes(self.m * rows, self.k * inner, self.n * cols)
        a, b, c = (cut_grid(*side) for side in sides)
        return Target(*sizes, a, b, c, self.block_recursive, self.shared)


def pair_of(target: Target) -> Pair | None:
    """The structured pair that gives a target its name, or None where it has another name."""
    corners = target.c[0][0], target.c[-1][-1]
    if target.entries is None and Kind.ABSENT not in corners:  # its forms have names of their own
        return None
    return next(pairs_of(target), None)


def pairs_of(target: Target) -> Iterator[Pair]:
    """All structured pairs of the literature that a target is."""
    corners = "".join(letter for letter, at in (("a", 0), ("b", -1)) if target.c[at][at] is Kind.ABSENT)
    omitted = {"ab": "c"}.get(corners, corners)
    for pair in all_pairs():
        if pair.omitted != omitted or pair.scalars_only != (target.entries is not None):
            continue
        if fits(pair, target.shape):
            try:
                made = grids_of(pair, target.shape)
            except TargetError:
                continue
            if (made.a, made.b, made.c, made.entries) == (target.a, target.b, target.c, target.entries) and (
                made.shared == target.shared
            ):
                yield pair


@lru_cache(maxsize=256)
def _general(m: int, k: int, n: int) -> Target:
    """Kept with its name, kinds and terms: files by the thousand are of the same few targets."""
    return Target(m, k, n, full_grid(m, k), full_grid(k, n), full_grid(m, n))


def _checked_sizes(m: int, k: int, n: int) -> tuple[int, int, int]:
    if not all(1 <= size <= MAX_DIMENSION for size in (m, k, n)):
        raise TargetError(f"grid {m}x{k}x{n}: each of m, k, n must be 1 to {MAX_DIMENSION}")
    return m, k, n


def _as_array(grid: Kinds) -> IntArray:
    array = np.array(grid, dtype=np.int64)
    array.setflags(write=False)
    return array


_TRIANGULAR = ("tri-left", "tri-right", "tri-out")
GRAM = "gram"
_BANDED = {"band": band_grid, "prefix": prefix_grid, "window": window_grid}


def _forms(shape: tuple[int, int, int]) -> Iterator[str]:
    """The names of all forms of one matrix that a grid of this shape can have, `gram` but for its triangle."""
    yield from (f"{form}{side}" for form in _TRIANGULAR for side in ("", ":upper"))
    # Wider bands are the full grid, a prefix of size - 1 or more is too, as is no window.
    yield from (f"{form}({width})" for form in _BANDED for width in range(1, shape[0]))


def _placed(shape: tuple[int, int, int], form: str) -> tuple[int, Kinds] | None:
    """Whose grid a form names, 0 to 2 for A, B and C, and the grid, or None where that matrix is not square.

    Raises:
        TargetError: there is no such form.
    """
    m, k, n = shape
    stem, _, side = form.partition(":")
    if masked := re.fullmatch(r"mask\((.+)\)", form):
        return 2, read_mask(masked.group(1))
    if banded := re.fullmatch(r"(band|prefix|window)\((\d{1,3})\)", form):
        return (2, _BANDED[banded.group(1)](m, int(banded.group(2)))) if m == n else None
    if stem in (*_TRIANGULAR, GRAM) and side in ("", "upper", "lower"):
        role = 2 if stem == GRAM else _TRIANGULAR.index(stem)
        rows, cols = ((m, k), (k, n), (m, n))[role]
        return (role, triangular_grid(rows, side == "upper")) if rows == cols else None
    raise TargetError(
        f"target form {form!r} is not known{did_you_mean(form, (*_TRIANGULAR, GRAM))}; choose one of "
        f"{', '.join((*_TRIANGULAR, GRAM))} (:upper if wanted), "
        "band(w), prefix(p), window(w), mask(FILE), tensor(FILE), a pair such as ul, ss or gt, or several of "
        "different matrices with + between"
    )


def _formed(shape: tuple[int, int, int], forms: str) -> Target | None:
    """The target of named forms, or None where a matrix of them has no square grid.

    Raises:
        TargetError: there is no such form, or two of them are of one matrix.
    """
    m, k, n = shape
    grids: dict[int, Kinds] = {}
    parts = re.split(r"\+(?![^(]*\))", forms)  # a mask's file may have a + in its name
    shared = any(part.partition(":")[0] == GRAM for part in parts)
    for part in parts:
        if (placed := _placed(shape, part)) is None:
            return None
        role, grid = placed
        if role in grids or (shared and role == 1):
            raise TargetError(f"target form {forms!r} says twice what {'ABC'[role]} is")
        grids[role] = grid
    a = grids.get(0, full_grid(m, k))
    b = mirrored_grid(a) if shared else grids.get(1, full_grid(k, n))
    return Target(m, k, n, a, b, grids.get(2, full_grid(m, n)), shared=shared)


def parse_target(name: str, files: bool = True) -> Target:
    """The target of a name: `MxKxN`, or that with a form, or `mask:FILE`, or `tensor(FILE)`.

    Forms are `tri-left`, `tri-right`, `tri-out` (each with `:upper` if wanted), `gram` (tri-out with
    B = A^T), and for the output `band(w)`, `prefix(p)`, `window(w)` and `mask(FILE)` (see `grids`);
    forms of different matrices are joined by +, as in `tri-left:upper+tri-right`, upper times lower.
    Or all three grids in `blocks(A,B,C)`: written row by row, rows parted by `/`, a block as F
    (full), L (lower), U (upper) or `.` (absent). Or a pair of structured matrices such as `ul`, `ss`
    or `gtc` (see `pairs`). `mask:FILE` is the mask on its own grid, with a
    square A. Any other bilinear map comes from a `tensor(FILE)` (see `terms`), on a given grid or
    the smallest that holds it; its own name is `terms(...)`, with all of it. Without `files` a mask
    or tensor file is refused: a name that stands in a scheme file must not open another file.

    Raises:
        TargetError: the name is none of these, or its parts do not fit together.
    """
    need(str, name=name)
    if from_file := re.fullmatch(r"(?:(\d{1,3})x(\d{1,3})x(\d{1,3}):)?tensor\((.+)\)", name.strip()):
        if not files:
            raise TargetError(f"target {name[:60]!r} names a tensor file; write the terms themselves as terms(...)")
        m, k, n, path = from_file.groups()
        return Target.of_terms(read_tensor(path), (int(m), int(k), int(n)) if m else None)
    if masked := re.fullmatch(r"mask(?::(.+)|\((.+)\))", name.strip()):
        if not files:
            raise TargetError(f"target {name[:60]!r} names a mask file; write the mask itself as blocks(A,B,C)")
        c = read_mask(masked.group(1) or masked.group(2))
        m, _, n = _checked_sizes(len(c), 1, len(c[0]))
        return Target(m, m, n, full_grid(m, m), full_grid(m, n), c)
    match = re.fullmatch(r"(\d{1,6})x(\d{1,6})x(\d{1,6})(?::(.+))?", name.strip())
    if not match:
        sizes = re.findall(r"[1-9]\d{0,5}", name) or ["3"]
        raise TargetError(
            f"target {name[:60]!r} is not understood; write MxKxN, such as {'x'.join([*sizes, *sizes[-1:] * 2][:3])}, "
            "or MxKxN:tri-left|tri-right|tri-out|gram[:upper]"
        )
    shape = _checked_sizes(*(int(size) for size in match.group(1, 2, 3)))
    form = match.group(4)
    if form is None:
        return Target.general(*shape)
    if (entries := parse_terms(form)) is not None:
        return Target.of_terms(entries, shape)
    if (pair := parse_pair(form)) is not None:
        return Target.of_pair(pair, shape)
    if blocks := re.fullmatch(r"blocks\(([FLU./]+),([FLU./]+),([FLU./]+)\)", form):
        a, b, c = (tuple(tuple(KINDS[ch] for ch in row) for row in grid.split("/")) for grid in blocks.groups())
        return Target(*shape, a, b, c)
    if "mask(" in form and not files:
        raise TargetError(f"target {name!r} names a mask file; write the mask itself as blocks(A,B,C)")
    if (target := _formed(shape, form)) is None:
        raise TargetError(f"target {name!r}: the triangular or masked matrix must have a square grid")
    return target
