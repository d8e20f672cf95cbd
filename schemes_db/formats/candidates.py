"""From the factors of a file to its reading: one candidate for each convention that the sizes allow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ...errors import SchemeFormatError
from ..factor import COEFFICIENT_LIMIT, Factor, IntArray
from ..gaussian import Number
from ..ring import Ring
from ..scheme import MAX_RANK, Scheme
from ..target import MAX_DIMENSION, Target
from .reading import C_TRANSPOSED, C, Reading, Term, factor_of, ring_of

Shape = tuple[int, int, int]
Row = Iterable[tuple[int, Number]]
"""One product of a factor: 0-based flat index and coefficient of every entry that may be nonzero."""

Terms = Sequence[Sequence[Term]]


def shape_of(a: int, b: int, c: int) -> Shape:
    """The sizes (m, k, n) of a product whose A, B and C have so many entries: m k, k n and m n.

    Raises:
        SchemeFormatError: there are none.
    """
    if a > 0 and b > 0 and c > 0:
        k = math.isqrt(a * b // c)
        if k and not (a % k or b % k) and (a // k) * (b // k) == c:
            return a // k, k, b // k
    raise SchemeFormatError(f"factors of {a}, {b} and {c} entries belong to no matrix product")


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
    u, v, w = (
        factor_of([[(*divmod(index, width), value) for index, value in row] for row in part], height, width, label)
        for part, height, width, label in zip(rows, (m, k, m), (k, n, n), "UVW", strict=True)
    )
    return reading_of_factors(format, u, v, w, documented, chosen, ring, notes)


def reading_of_arrays(
    format: str,
    arrays: Sequence[npt.NDArray[np.generic]],
    documented: str,
    target: Target | None = None,
    ring: Ring | None = None,
    notes: tuple[str, ...] = (),
) -> Reading:
    """The reading of three arrays (entries, R) of numbers, whose columns are products.

    Raises:
        SchemeFormatError: shapes that do not fit together, or numbers that are not exact.
    """
    if any(array.ndim != 2 for array in arrays) or len({array.shape[1] for array in arrays}) != 1:
        raise SchemeFormatError("expected three 2-d arrays of one number of columns, one column a product")
    rank = arrays[0].shape[1]
    if not 1 <= rank <= MAX_RANK:
        raise SchemeFormatError(f"a scheme has 1 to {MAX_RANK} products, not {rank}")
    m, k, n = shape_of(*(array.shape[0] for array in arrays))
    chosen = target_of((m, k, n), target)
    factors = []
    for array, grid in zip(arrays, ((m, k), (k, n), (m, n)), strict=True):
        values, denominator = exact(array.T)
        factors.append(Factor.from_dense(values.reshape(rank, *grid, *values.shape[2:]), denominator))
    u, v, w = factors
    return reading_of_factors(format, u, v, w, documented, chosen, ring, notes)


def reading_of_terms(
    format: str,
    a: Terms,
    b: Terms,
    c: Terms,
    documented: str,
    target: Target | None = None,
    ring: Ring | None = None,
    sizes: tuple[tuple[int, int], ...] | None = None,
) -> Reading:
    """The reading of three factors given product by product, entries by row and column.

    `sizes` are (rows, cols) of the three grids as the file states them; without them the grids hold
    every block that is named. The third grid is n x m by C^T and m x n by C.

    Raises:
        SchemeFormatError: by no convention do the sizes fit together, or fit the target.
    """
    found = sizes or tuple(_extent(factor) for factor in (a, b, c))
    (m, inner), (other, n), third = found
    k = max(inner, other)
    if sizes and inner != other:
        raise SchemeFormatError(f"A is {m} x {inner} but B is {other} x {n}")
    if sizes and target is not None:
        target_of((m, k, n), target)
    candidates: list[tuple[str, Scheme]] = []
    failure = SchemeFormatError(
        f"A is {m} x {k} and B is {k} x {n}, but the third factor has {third[0]} x {third[1]} blocks"
    )
    for convention in sorted((C, C_TRANSPOSED), key=lambda name: name != documented):
        flipped = convention == C_TRANSPOSED
        grid = (n, m) if flipped else (m, n)
        fits = third == grid if sizes else third[0] <= grid[0] and third[1] <= grid[1]
        if not fits and (sizes or target is None):
            continue
        shape = target or Target.general(m, k, n)
        outputs = [[(j, i, value) for i, j, value in terms] for terms in c] if flipped else c
        try:
            u, v = factor_of(a, shape.m, shape.k, "A"), factor_of(b, shape.k, shape.n, "B")
            w = factor_of(outputs, shape.m, shape.n, "C")
            candidates.append((convention, Scheme(shape, u, v, w, ring or ring_of((u, v, w)))))
        except SchemeFormatError as error:
            failure = error
    if not candidates:
        raise failure
    return Reading(format, tuple(candidates))


def _extent(factor: Terms) -> tuple[int, int]:
    rows = max((row + 1 for terms in factor for row, _, _ in terms), default=0)
    return rows, max((col + 1 for terms in factor for _, col, _ in terms), default=0)


MAX_BINARY_PLACES = 20
"""Binary places of a float that is taken for an exact fraction."""


def exact(array: npt.NDArray[np.generic]) -> tuple[IntArray, int]:
    """An array of numbers as int64 over one denominator; complex ones get a trailing axis of length 2.

    Raises:
        SchemeFormatError: a float that is no fraction with a small power of two below, or a number beyond 2^62.
    """
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    if array.dtype.kind in "bui":
        if array.size and (int(array.max()) >= COEFFICIENT_LIMIT or int(array.min()) <= -COEFFICIENT_LIMIT):
            raise SchemeFormatError("a coefficient beyond 2^62")
        return array.astype(np.int64), 1
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
