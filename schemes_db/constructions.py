"""Schemes of other sizes from given ones: direct sums, borders, cuts; and other bases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..errors import TargetError
from .algebra import naive
from .factor import COEFFICIENT_LIMIT, Factor, IntArray
from .grids import full_grid
from .provenance import constructed
from .ring import QI, Q, Ring
from .scheme import Scheme
from .target import Target

AXES = "mkn"
FACTOR_AXES = ((0, 1), (1, 2), (0, 2))
"""The axes of A, B and C, by their place in AXES."""
_PLACES = {"m": ((0, 0), (2, 0)), "k": ((0, 1), (1, 0)), "n": ((1, 1), (2, 1))}
"""For every axis the (factor, axis of its grid) that run along it."""


def direct_sum(first: Scheme, second: Scheme, axis: str) -> Scheme:
    """Both schemes side by side along m, k or n: ranks add; the other two sizes must agree.

    Along m or n the two compute separate parts of C, along k they add into the same C, of which parts may be unwanted.

    Raises:
        TargetError: no such axis, sizes that differ, a target that is not general (along k: whose A or B is not, or
            whose C is not that of the other), other rings.
    """
    position = _axis(axis)
    masked = axis == "k" and all(_full_factors(scheme.target) for scheme in (first, second))
    if not (masked and first.target.c == second.target.c):
        for scheme in (first, second):
            need_general(scheme)
    if first.ring.characteristic != second.ring.characteristic:
        raise TargetError(f"schemes over {first.ring} and {second.ring} have no direct sum")
    sizes = list(first.target.shape)
    if any(x != y for i, (x, y) in enumerate(zip(sizes, second.target.shape, strict=True)) if i != position):
        raise TargetError(f"{first.target} and {second.target} differ in more than {axis}: no direct sum along it")
    sizes[position] += second.target.shape[position]
    m, k, n = sizes
    target = Target.general(m, k, n)
    if not first.target.is_general:
        target = replace(target, c=first.target.c)
    shapes = ((target.m, target.k), (target.k, target.n), (target.m, target.n))
    offsets = [[0, 0], [0, 0], [0, 0]]
    for factor, grid_axis in _PLACES[axis]:
        offsets[factor][grid_axis] = first.target.shape[position]
    factors = [
        x.placed(*shape).stacked(y.placed(*shape, *offset))
        for x, y, shape, offset in zip(first.factors, second.factors, shapes, offsets, strict=True)
    ]
    ring = wider(first.ring, second.ring)
    parents = ((one.digest, one.provenance) for one in (first, second))
    origin = constructed("sum", f"direct sum along {axis}", *parents, axis=axis)
    return Scheme(target, factors[0], factors[1], factors[2], ring, "", origin)


def extend(scheme: Scheme, axis: str, by: int = 1) -> Scheme:
    """The scheme with `by` further blocks along an axis, computed by the classical algorithm."""
    position = _axis(axis)
    if by < 1:
        raise TargetError(f"a scheme is extended by 1 or more, not {by}")
    sizes = list(scheme.target.shape)
    sizes[position] = by
    return direct_sum(scheme, naive(Target.general(*sizes), scheme.ring), axis)


def project(scheme: Scheme, axis: str, index: int) -> Scheme:
    """The scheme without block `index` (from 0) of an axis; products that lose a factor are removed.

    Raises:
        TargetError: no such axis or index, nothing would be left, or a target that is not general.
    """
    position = _axis(axis)
    need_general(scheme)
    sizes = list(scheme.target.shape)
    if not 0 <= index < sizes[position] or sizes[position] == 1:
        raise TargetError(f"{scheme.target} has no block {index} along {axis} that it could do without")
    sizes[position] -= 1
    lines = [np.arange(size, dtype=np.int64) for size in scheme.target.shape]
    lines[position] -= lines[position] > index
    lines[position][index] = -1
    factors = without_zeros(
        [factor.restricted(lines[x], lines[y]) for factor, (x, y) in zip(scheme.factors, FACTOR_AXES, strict=True)]
    )
    parent = (scheme.digest, scheme.provenance)
    origin = constructed("project", f"projection along {axis}", parent, axis=axis, index=str(index))
    return Scheme(Target.general(*sizes), factors[0], factors[1], factors[2], scheme.ring, "", origin)


def change_of_basis(scheme: Scheme, p: npt.ArrayLike, q: npt.ArrayLike, r: npt.ArrayLike) -> Scheme:
    """The scheme of C = P^-1 ((P A Q^-1) (Q B R^-1)) R, for unimodular integer P (m, m), Q (k, k), R (n, n).

    Source: H. F. de Groote, "On varieties of optimal algorithms for the computation of bilinear
    mappings" (1978): such sandwiching, with the symmetries of the roles, is all there is.

    Raises:
        TargetError: a matrix is not square of the right size with determinant 1 or -1, the target
            is not general, or coefficients grow beyond 2^62.
    """
    need_general(scheme)
    if scheme.gaussian:
        raise TargetError("a change of basis needs real coefficients")
    pairs = [_with_inverse(matrix, size) for matrix, size in zip((p, q, r), scheme.target.shape, strict=True)]
    (p_, p_inv), (q_, q_inv), (r_, r_inv) = pairs
    moved = (
        _sandwich(p_.T, scheme.u, q_inv.T),
        _sandwich(q_.T, scheme.v, r_inv.T),
        _sandwich(p_inv, scheme.w, r_),
    )
    texts = {name: matrix_text(pair[0]) for name, pair in zip("pqr", pairs, strict=True)}
    origin = constructed("basis", "change of basis", (scheme.digest, scheme.provenance), **texts)
    return Scheme(scheme.target, moved[0], moved[1], moved[2], scheme.ring, "", origin)


def matrix_text(matrix: IntArray) -> str:
    """An integer matrix as text: entries parted by commas, rows by semicolons."""
    return ";".join(",".join(map(str, row)) for row in matrix.tolist())


def _axis(axis: str) -> int:
    if axis not in AXES or len(axis) != 1:
        raise TargetError(f"axis {axis!r} must be m, k or n")
    return AXES.index(axis)


def _full_factors(target: Target) -> bool:
    """Return whether it is a product of two full matrices, of which a part may be wanted."""
    plain = target.is_product and not target.shared and target.block_recursive
    return plain and target.a == full_grid(target.m, target.k) and target.b == full_grid(target.k, target.n)


def without_zeros(factors: Sequence[Factor]) -> list[Factor]:
    """Return the three factors without the products of which one factor is zero."""
    nonzero = np.logical_and.reduce([np.diff(factor.indptr) > 0 for factor in factors])
    return [factor.selected(nonzero) for factor in factors]


def need_general(scheme: Scheme) -> None:
    """Refuse a scheme that is not for a full product.

    Raises:
        TargetError: it is not.
    """
    if not scheme.target.is_general:
        raise TargetError(f"{scheme.target} is not a general target: this is known for those only")


def wider(first: Ring, second: Ring) -> Ring:
    """Return the one of two rings of equal characteristic that contains the other."""
    return next((ring for ring in (QI, Q) if ring in (first, second)), first)


def _with_inverse(matrix: npt.ArrayLike, size: int) -> tuple[IntArray, IntArray]:
    """A unimodular matrix and its inverse, exactly (fraction-free elimination in Python integers)."""
    array = np.asarray(matrix)
    if array.shape != (size, size) or not np.issubdtype(array.dtype, np.integer):
        raise TargetError(f"a change of basis needs an integer matrix of {size} x {size}, not {array.shape}")
    if any(abs(int(x)) >= COEFFICIENT_LIMIT for x in array.flat):
        raise TargetError("the change of basis has entries beyond 2^62")
    rows = [[int(x) for x in row] + [int(i == j) for j in range(size)] for i, row in enumerate(array)]
    for column in range(size):
        # Euclid on the column below the diagonal: only unimodular row operations.
        while sum(1 for row in rows[column:] if row[column]) > 1:
            pivot = min((r for r in range(column, size) if rows[r][column]), key=lambda r: abs(rows[r][column]))
            for r in range(column, size):
                if r != pivot and rows[r][column]:
                    times = rows[r][column] // rows[pivot][column]
                    rows[r] = [x - times * y for x, y in zip(rows[r], rows[pivot], strict=True)]
        found = next((r for r in range(column, size) if rows[r][column]), None)
        if found is None or abs(rows[found][column]) != 1:
            raise TargetError("a change of basis needs a matrix with determinant 1 or -1")
        rows[column], rows[found] = rows[found], rows[column]
        rows[column] = [x * rows[column][column] for x in rows[column]]
        for r in range(size):
            if r != column and rows[r][column]:
                times = rows[r][column]
                rows[r] = [x - times * y for x, y in zip(rows[r], rows[column], strict=True)]
    inverse = [row[size:] for row in rows]
    if any(abs(x) >= COEFFICIENT_LIMIT for row in inverse for x in row):
        raise TargetError("the inverse change of basis has entries beyond 2^62")
    return array.astype(np.int64), np.array(inverse, dtype=np.int64).reshape(size, size)


def _sandwich(left: IntArray, factor: Factor, right: IntArray) -> Factor:
    """left F right for the matrix F of every product, refused where int64 might overflow."""
    peaks = [int(np.abs(left).max(initial=0)), factor.peak, int(np.abs(right).max(initial=0))]
    if peaks[0] * peaks[1] * peaks[2] * left.shape[0] * right.shape[0] >= COEFFICIENT_LIMIT:
        raise TargetError("the change of basis brings coefficients beyond 2^62")
    return Factor.from_dense(left @ factor.dense @ right, factor.denominator)
