"""Three arrays of which nobody said how they lie: products as rows or as columns, the third factor by C or by C^T.

Everything that the shapes allow becomes a candidate, which verification decides among.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import SchemeFormatError
from ..factor import Factor
from ..inexact import Inexact
from ..ring import Ring
from ..scheme import MAX_RANK, Scheme
from ..target import MAX_DIMENSION, Target
from .candidates import approximate, doubt_of, exact, is_exact, shape_of, target_of
from .reading import C_TRANSPOSED, C, Entries, Reading, factor_of, ring_of

Array = npt.NDArray[Any]

MAX_ENTRIES = 1 << 24

ROLES = (
    ("u", "a", "alpha", "l", "left", "x", "f1", "factor1", "0", "arr0", "umatrix", "ufactor", "factora", "matrixu"),
    ("v", "b", "beta", "r", "right", "y", "f2", "factor2", "1", "arr1", "vmatrix", "vfactor", "factorb", "matrixv"),
    ("w", "c", "gamma", "p", "out", "z", "f3", "factor3", "2", "arr2", "wmatrix", "wfactor", "factorc", "matrixw"),
)
"""Names that people give to the three factors, in lower case and without anything but letters and digits."""


@dataclass(frozen=True)
class _Way:
    """One way to read three arrays: each (R, rows, cols), the third by C or C^T."""

    label: str
    convention: str
    arrays: tuple[Array, Array, Array]
    shape: tuple[int, int, int]


def named_factors(arrays: Mapping[str, Array]) -> tuple[list[Array], tuple[str, ...]] | None:
    """The three factors among named arrays, and how they were identified; None where there are none.

    Raises:
        SchemeFormatError: three arrays have the names of factors, and one is no matrix: another is no whole scheme.
    """
    plain = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name, array in arrays.items() if array.ndim in (2, 3)}
    for names in zip(*ROLES, strict=True):
        if all(name in plain for name in names):
            found = [plain[name] for name in names]
            return [arrays[name] for name in found], (f"factors {', '.join(found)}",)
    every = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in arrays}
    for names in zip(*ROLES, strict=True):
        if all(name in every for name in names):
            unfit = next(every[name] for name in names if name not in plain)
            raise SchemeFormatError(f"{unfit} has shape {arrays[unfit].shape}: a factor is a matrix, (R, entries)")
    for array in (arrays[name] for name in plain.values()):
        if (stacked := unstacked(array)) and len(plain) == 1:
            return stacked, ("one array of all three factors",)
    if len(plain) == 3:
        found = list(plain.values())
        return [arrays[name] for name in found], (f"arrays {', '.join(found)} in the order of the file",)
    return None


def unstacked(array: Array) -> list[Array] | None:
    """The three factors of one array: stacked on the first or the last axis, or the second of three."""
    if array.ndim == 4 and array.shape[0] == 3:
        return list(array)
    if array.ndim != 3:
        return None
    for axis in (0, 2, 1):
        if array.shape[axis] == 3 and (axis == 0 or 3 not in array.shape[:1]):
            return [np.take(array, i, axis) for i in range(3)]
    return None


def side_by_side(array: Array) -> list[Array] | None:
    """The factors of square matrices in one 2-d array, [U V W] in a row or one below the other."""
    if array.ndim != 2:
        return None
    rows, cols = array.shape
    for axis, length in ((1, cols), (0, rows)):
        side = round((length / 3) ** 0.5)
        if length % 3 == 0 and side * side * 3 == length and side > 0:
            return np.split(array, 3, axis=axis)
    return np.split(array, 3, axis=0) if rows % 3 == 0 else None


def reading_of_unlabelled(
    format: str,
    arrays: Sequence[Array],
    target: Target | None = None,
    ring: Ring | None = None,
    notes: tuple[str, ...] = (),
    documented: tuple[str, str] | None = None,
    others: bool = False,
) -> Reading:
    """The reading of three arrays of numbers, by every way that their shapes allow.

    A format that says how they lie has a `documented` convention and, if they are not rows, what products are; the
    other convention becomes a candidate, too, and with `others` every way that is not documented.

    Raises:
        SchemeFormatError: no way fits; the shapes are named.
    """
    ways = list(_ways(arrays))
    if documented is not None:
        known, lies = documented
        meant = [way for way in ways if way.label == (f"{way.convention}, {lies}" if lies else way.convention)]
        rest = [way for way in ways if way not in meant] if others else []
        ways = [replace(way, label=way.convention) for way in sorted(meant, key=lambda way: way.convention != known)]
        ways += rest
    shapes = ", ".join(" x ".join(map(str, array.shape)) for array in arrays)
    if target is not None:
        ways = [way for way in ways if way.shape == target.shape]
    if not ways:
        wanted = f" for {target}" if target is not None else ""
        raise SchemeFormatError(
            f"arrays of {shapes} fit together in no way{wanted}; wanted are U (R, m k), V (R, k n) and W (R, m n), "
            "or their transposes"
        )
    if documented is None and ways[0].shape == (1, 1, 1) and len(ways[0].arrays[0]) > 1:
        raise SchemeFormatError(f"arrays of {shapes} are several products of two numbers: this is no scheme")
    candidates: list[tuple[str, Scheme]] = []
    approximations = []
    failure: SchemeFormatError | None = None
    for way in ways:
        chosen = target_of(way.shape, target)
        try:
            third = way.arrays[2].transpose(0, 2, 1) if way.convention == C_TRANSPOSED else way.arrays[2]
            factors = (*way.arrays[:2], third)
            if not all(map(_exact, factors)):
                rows = [_rows(array) for array in factors]
                found = approximate(format, rows, (C,), chosen, ring).approximations
                approximations += [(way.label, one) for _, one in found]
                continue
            u, v, w = (_factor(array, label) for array, label in zip(factors, "UVW", strict=True))
            candidates.append((way.label, Scheme(chosen, u, v, w, ring or ring_of((u, v, w)))))
        except SchemeFormatError as error:
            failure = failure or error
    if failure and not (candidates or approximations):
        raise failure
    doubt = "" if documented else doubt_of(len(ways[0].arrays[0]), [way.shape for way in ways])
    return Reading(format, tuple(candidates), None, notes, approximations=tuple(approximations), doubt=doubt)


def _ways(arrays: Sequence[Array]) -> Iterable[_Way]:
    """Products as rows before products as columns, C before C^T, entries by rows before entries by columns."""
    dimensions = {array.ndim for array in arrays}
    if len(arrays) != 3 or len(dimensions) != 1 or not dimensions <= {2, 3}:
        return
    where = "along the last axis" if dimensions == {3} else "as columns"
    for axes in sorted(product((0, -1), repeat=3), key=lambda axes: (len(set(axes)), -sum(axes))):
        ranks = {array.shape[axis] for array, axis in zip(arrays, axes, strict=True)}
        if len(ranks) != 1 or not 1 <= max(ranks) <= MAX_RANK:
            continue
        turned = [np.moveaxis(array, axis, 0) for array, axis in zip(arrays, axes, strict=True)]
        of = "".join(label for label, axis in zip("UVW", axes, strict=True) if axis)
        lies = f"products {where}{'' if of == 'UVW' else f' of {of}'}" if of else ""
        yield from _grids(turned, lies) if dimensions == {3} else _flat(turned, lies)


def _flat(arrays: Sequence[Array], lies: str) -> Iterable[_Way]:
    try:
        m, k, n = shape_of(*(array.shape[1] for array in arrays))
    except SchemeFormatError:
        return
    if max(m, k, n) > MAX_DIMENSION:
        return
    rank = len(arrays[0])
    for by_columns in (False, True):
        for convention in (C, C_TRANSPOSED):
            third = (m, n) if convention == C else (n, m)
            grids = []
            for array, (rows, cols) in zip(arrays, ((m, k), (k, n), third), strict=True):
                grids.append(
                    array.reshape(rank, cols, rows).transpose(0, 2, 1)
                    if by_columns
                    else array.reshape(rank, rows, cols)
                )
            how = ", ".join(part for part in (lies, "entries by columns" if by_columns else "") if part)
            label = f"{convention}, {how}" if how else convention
            yield _Way(label, convention, (grids[0], grids[1], grids[2]), (m, k, n))


def _grids(arrays: Sequence[Array], lies: str) -> Iterable[_Way]:
    (m, k), (inner, n), third = (array.shape[1:] for array in arrays)
    if inner != k or max(m, k, n) > MAX_DIMENSION:
        return
    for convention, wanted in ((C, (m, n)), (C_TRANSPOSED, (n, m))):
        if third == wanted:
            label = f"{convention}, {lies}" if lies else convention
            yield _Way(label, convention, (arrays[0], arrays[1], arrays[2]), (m, k, n))


def _exact(array: Array) -> bool:
    if array.dtype.kind == "O":
        return Inexact not in set(map(type, array.ravel().tolist()))
    return is_exact(array)


def _rows(array: Array) -> list[list[tuple[int, Any]]]:
    flat = array.reshape(len(array), -1).tolist()
    if array.dtype.kind != "O":
        return [[(i, Inexact.of(complex(x))) for i, x in enumerate(row) if x] for row in flat]
    return [[(i, x) for i, x in enumerate(row) if x] for row in flat]


def _factor(array: Array, label: str) -> Factor:
    if array.dtype.kind != "O":
        values, denominator = exact(array)
        return Factor.from_dense(values, denominator)
    _, rows, cols = array.shape
    return factor_of(Entries.of(_rows(array), cols), rows, cols, label)


def as_array(rows: Any) -> Array | None:
    """Nested lists of numbers as an array of 1 to 4 dimensions, of integers or of objects; None where ragged."""
    shape: list[int] = []
    probe = rows
    while isinstance(probe, list):
        shape.append(len(probe))
        if not probe or len(shape) > 4:
            return None
        probe = probe[0]
    if not shape:
        return None
    flat: list[Any] = rows
    for size in shape[1:]:
        if not all(isinstance(part, list) and len(part) == size for part in flat):
            return None
        flat = [item for part in flat for item in part]
        if len(flat) > MAX_ENTRIES:
            raise SchemeFormatError(f"arrays of more than {MAX_ENTRIES} entries")
    kinds = set(map(type, flat))
    if any(kind is type(None) or issubclass(kind, list | dict | str) for kind in kinds):
        return None
    if kinds == {int} and min(flat) > -(1 << 62) and max(flat) < 1 << 62:
        return np.array(flat, dtype=np.int64).reshape(shape)
    array = np.empty(len(flat), dtype=object)
    array[:] = flat
    return array.reshape(shape)
