"""From the factors of a file to its reading: one candidate for each convention that the sizes allow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set

import numpy as np
import numpy.typing as npt

from ...errors import LcmaError, SchemeFormatError
from ..factor import Factor, IntArray, integer_array
from ..inexact import Approximation, Coefficient, inexact
from ..ring import Ring
from ..scheme import MAX_RANK, Scheme
from ..target import MAX_DIMENSION, Target
from .arithmetic import MAX_BINARY_PLACES
from .layouts import triangular_targets
from .reading import C_TRANSPOSED, C, Entries, Reading, factor_of, ring_of

Shape = tuple[int, int, int]
Factors = tuple[Entries, Entries, Entries]
Option = tuple[str, Target, Factors]
"""What a file may be: a label, the target, and the factors by row and column."""

Row = Iterable[tuple[int, Coefficient]]
"""One product of a factor: 0-based flat index and coefficient of every entry that may be nonzero."""


def shape_of(a: int, b: int, c: int) -> Shape:
    """The sizes (m, k, n) of a product whose A, B and C have so many entries: m k, k n and m n.

    Raises:
        SchemeFormatError: there are none.
    """
    if a > 0 and b > 0 and c > 0:
        k = math.isqrt(a * b // c)
        if k and not (a % k or b % k) and (a // k) * (b // k) == c:
            return a // k, k, b // k
    if a > 1 and b > 1 and c == a + b - 1:
        raise SchemeFormatError(
            f"factors of {a}, {b} and {c} entries multiply polynomials, which is no product of matrices; say what they "
            "compute with --target, as terms(...)"
        )
    raise SchemeFormatError(f"factors of {a}, {b} and {c} entries belong to no matrix product")


def doubt_of(rank: int, shapes: Iterable[Shape]) -> str:
    """Why so many products for matrices of any of these sizes may be no scheme; nothing where they may be one."""
    if any(rank <= math.prod(shape) > 1 for shape in shapes):
        return ""
    return f"{rank} products that belong to no product of matrices in sight: this may be no scheme"


def target_of(shape: Shape, target: Target | None) -> Target:
    """The target that the user names, if it has the sizes of the file; else the general one of these sizes.

    Raises:
        SchemeFormatError: the sizes differ.
    """
    if target is None:
        return Target.general(*shape)
    if target.shape != shape:
        raise SchemeFormatError(f"the file says {'x'.join(map(str, shape))}, not {target}")
    return target


def reading_of_factors(
    format: str,
    u: Factor,
    v: Factor,
    w: Factor,
    documented: str,
    target: Target,
    ring: Ring | None = None,
    notes: tuple[str, ...] = (),
) -> Reading:
    """The reading of U (R, m, k), V (R, k, n) and a third factor of m n flat entries, on whatever grid.

    Raises:
        SchemeFormatError: by no convention do the factors fit the target and the ring.
    """
    rows, cols = target.m, target.n
    flat = (w.indptr, w.indices, w.values, w.denominator)
    by_convention = {C: Factor(rows, cols, *flat), C_TRANSPOSED: Factor(cols, rows, *flat).transposed()}
    candidates: list[tuple[str, Scheme]] = []
    failure: SchemeFormatError | None = None
    for convention in sorted(by_convention, key=lambda name: name != documented):
        third = by_convention[convention]
        try:
            candidates.append((convention, Scheme(target, u, v, third, ring or ring_of((u, v, third)))))
        except SchemeFormatError as error:  # a structured target has blocks absent in one convention only
            failure = failure or error
    if failure is not None and not candidates:
        raise failure
    return Reading(format, tuple(candidates), None, notes)


def reading_of_rows(
    format: str,
    rows: tuple[Sequence[Row], Sequence[Row], Sequence[Row]],
    shape: Shape,
    documented: str,
    target: Target | None = None,
    ring: Ring | None = None,
    notes: tuple[str, ...] = (),
) -> Reading:
    """The reading of three factors given product by product, entries by flat row-major index.

    Raises:
        SchemeFormatError: as `factor_of` and `reading_of_factors`.
    """
    chosen = target_of(shape, target)
    m, k, n = chosen.shape
    found = [Entries.of([list(row) for row in part], width) for part, width in zip(rows, (k, n, n), strict=True)]
    if any(entries.inexact for entries in found):
        listed = [entries.flat(width) for entries, width in zip(found, (k, n, n), strict=True)]
        return approximate(format, listed, _by(documented), chosen, ring, notes)
    sizes = zip(found, (m, k, m), (k, n, n), "UVW", strict=True)
    u, v, w = (factor_of(entries, height, width, label) for entries, height, width, label in sizes)
    return reading_of_factors(format, u, v, w, documented, chosen, ring, notes)


def reading_by_place(
    format: str,
    factors: Factors,
    documented: str,
    target: Target | None = None,
    ring: Ring | None = None,
    outputs: Set[tuple[int, int]] = frozenset(),
    *,
    triangular: bool = False,
    name: str = "",
    notes: tuple[str, ...] = (),
) -> Reading:
    """The reading of three factors, entries by row and column; `outputs` are places of C that are set, if to 0.

    The grids are the smallest that hold every block, the third n x m by C^T and m x n by C. `triangular` targets of
    just these blocks are candidates if they save products: a general scheme that lost an output has no fewer
    products than the triangle needs one by one.

    Raises:
        SchemeFormatError: by no convention do the sizes fit the target or the ring.
    """
    a, b, c = factors
    (m, k), (inner, n), (rows, cols) = (part.extent for part in factors)
    rows, cols = max(rows, *(i + 1 for i, _ in outputs), 0), max(cols, *(j + 1 for _, j in outputs), 0)
    k = max(k, inner)
    sizes = {C: (max(m, rows), k, max(n, cols)), C_TRANSPOSED: (max(m, cols), k, max(n, rows))}
    shapes = {one: sizes[one] for one in _by(documented)}
    smallest = min(map(math.prod, shapes.values()))
    wanted: list[Option] = []
    others: list[Option] = []
    rounded: list[tuple[str, Approximation]] = []
    for convention, shape in shapes.items():
        if not target and math.prod(shape) > smallest:
            continue
        if a.inexact or b.inexact or c.inexact:
            chosen = target or Target.general(*shape)
            widths = chosen.k, chosen.n, chosen.m if convention == C_TRANSPOSED else chosen.n
            listed = [part.flat(width) for part, width in zip(factors, widths, strict=True)]
            rounded += approximate(format, listed, (convention,), chosen, ring).approximations
            continue
        three = a, b, c if convention == C else c.transposed()
        used = three[2].places | (outputs if convention == C else {(j, i) for i, j in outputs})
        found: list[Option] = [(convention, Target.general(*shape), three)] if all(shape) or not target else []
        for one in triangular_targets(shape, (a.places, b.places, used)) if triangular else ():
            if a.rank < len(one.terms) + ("tri-out" not in one.name):
                found.append((f"{convention}, {one}", one, three))
        wanted += [(convention, target, three)] if target else found
        others += found if target else []
    if rounded:
        return Reading(format, (), None, notes, approximations=tuple(rounded))
    return reading_of_options(format, wanted, others, ring, name, notes)


def reading_of_options(
    format: str,
    wanted: Sequence[Option],
    others: Sequence[Option],
    ring: Ring | None,
    name: str = "",
    notes: tuple[str, ...] = (),
) -> Reading:
    """The reading of what a file may be; what it may be else than the target asked for becomes `alternatives`.

    Raises:
        SchemeFormatError: no option fits its target and the ring.
    """
    candidates, failure = _schemes(wanted, ring, name)
    alternatives, _ = _schemes(others, ring, name)
    if failure is not None and not candidates:
        hint = f"; it holds as {alternatives[0][1].target}" if alternatives else ""
        raise SchemeFormatError(f"{failure}{hint}")
    held = {scheme.target for _, scheme in candidates}
    alternatives = [(label, scheme) for label, scheme in alternatives if scheme.target not in held]
    return Reading(format, tuple(candidates), None, notes, alternatives=tuple(alternatives))


def _schemes(
    options: Iterable[Option], ring: Ring | None, name: str
) -> tuple[list[tuple[str, Scheme]], LcmaError | None]:
    """The schemes of the options that fit their targets, and the first failure."""
    found: list[tuple[str, Scheme]] = []
    failure: LcmaError | None = None
    for label, target, factors in options:
        m, k, n = target.shape
        try:
            grids = zip(factors, (m, k, m), (k, n, n), "ABC", strict=True)
            u, v, w = (factor_of(*grid) for grid in grids)
            found.append((label, Scheme(target, u, v, w, ring or ring_of((u, v, w)), name)))
        except LcmaError as error:
            failure = failure or error
    return found, failure


def _by(documented: str) -> list[str]:
    """Both conventions, the documented one first."""
    return sorted((C, C_TRANSPOSED), key=lambda name: name != documented)


def approximate(
    format: str,
    rows: Sequence[Sequence[Sequence[tuple[int, Coefficient]]]],
    conventions: Sequence[str],
    target: Target,
    ring: Ring | None,
    notes: tuple[str, ...] = (),
) -> Reading:
    """The reading of coefficients that are not exact, by each convention.

    Raises:
        SchemeFormatError: ranks that differ, or places outside the grid or given twice.
    """
    m, k, n = target.shape
    if len({len(part) for part in rows}) != 1 or not 1 <= len(rows[0]) <= MAX_RANK:
        raise SchemeFormatError("the three factors must have one number of products")
    for part, blocks, label in zip(rows, (m * k, k * n, m * n), "UVW", strict=True):
        for r, row in enumerate(part):
            places = {index for index, _ in row}
            if len(places) != len(row) or not all(0 <= index < blocks for index in places):
                raise SchemeFormatError(f"product {r + 1}: {label} has a place twice, or outside of its grid")
    found = []
    for convention in conventions:
        factors = [tuple(tuple((i, inexact(x)) for i, x in row if x) for row in part) for part in rows]
        if convention == C_TRANSPOSED:
            factors[2] = tuple(tuple((i % m * n + i // m, x) for i, x in row) for row in factors[2])
        found.append((convention, Approximation(target, (factors[0], factors[1], factors[2]), ring)))
    return Reading(format, (), None, notes, approximations=tuple(found))


def is_exact(array: npt.NDArray[np.generic]) -> bool:
    """Return whether all numbers are small binary fractions; an array of other things is left to `exact`."""
    if array.dtype.kind not in "fc" or not np.isfinite(array).all():
        return True
    with np.errstate(over="ignore"):  # which leaves no finite number, so no exact one
        parts = np.stack([array.real, array.imag]).astype(np.float64) * float(1 << MAX_BINARY_PLACES)
    return bool((parts == np.rint(parts)).all())


def exact(array: npt.NDArray[np.generic]) -> tuple[IntArray, int]:
    """An array of numbers as integers over one denominator; complex ones get a trailing axis of length 2.

    Integers that int64 does not hold become Python integers (dtype object).

    Raises:
        SchemeFormatError: a float that is no fraction with a small power of two below, or beyond 2^40.
    """
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    if array.dtype.kind in "bui":
        ends = [int(array.min()), int(array.max())] if array.size else []
        return array.astype(integer_array(ends).dtype), 1
    if array.dtype.kind == "O" and set(map(type, array.ravel())) <= {int}:
        return integer_array(array.ravel().tolist()).reshape(array.shape), 1
    if array.dtype.kind != "f":
        raise SchemeFormatError(f"an array of {array.dtype}, where numbers belong")
    values = array.astype(np.float64)
    if not np.isfinite(values).all() or (values.size and np.abs(values).max() >= 2.0**40):
        raise SchemeFormatError("a float that is not finite, or beyond 2^40")
    places = 0
    while (values != np.rint(values)).any():
        places, values = places + 1, values * 2
        if places > MAX_BINARY_PLACES:
            worst = float(array.ravel()[np.argmax(values.ravel() != np.rint(values.ravel()))])
            raise SchemeFormatError(
                f"float {worst!r} is no exact fraction; round the scheme to fractions and write it as lcma-json"
            )
    return values.astype(np.int64), 1 << places


def likely_shapes(total: int) -> list[tuple[Shape, int]]:
    """Every ((m, k, n), rank) with rank (m k + k n + m n) = total and a rank that a scheme may have.

    That is at least the entries of the largest matrix, at most m k n.
    """
    found = []
    for m in range(1, MAX_DIMENSION + 1):
        for k in range(1, MAX_DIMENSION + 1):
            for n in range(1, MAX_DIMENSION + 1):
                entries = m * k + k * n + m * n
                if entries > total:
                    break
                rank, rest = divmod(total, entries)
                if not rest and max(m * k, k * n, m * n) <= rank <= m * k * n:
                    found.append(((m, k, n), rank))
    return found
