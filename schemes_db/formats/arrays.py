"""Three arrays of which nobody said how they lie: products as rows or as columns, the third factor by C or by C^T.

Everything that the shapes allow becomes a candidate, which verification decides among.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import SchemeFormatError
from ..inexact import Coefficient
from ..scheme import MAX_RANK
from ..target import MAX_DIMENSION
from .arithmetic import binary
from .candidates import Factors, Shape, reading_of_options, shape_of, target_of
from .reading import C_TRANSPOSED, C, Entries, Reading, Wanted

Array = npt.NDArray[Any]

MAX_ENTRIES = 1 << 24
_NUMBERED = re.compile(r"([A-Za-z]+)_?(\d{1,4})")
_NO_NUMBERS = (type(None), list, dict, str)

ROLES = (
    ("u", "a", "alpha", "l", "left", "x", "f1", "factor1", "0", "arr0", "umatrix", "ufactor", "factora", "matrixu"),
    ("v", "b", "beta", "r", "right", "y", "f2", "factor2", "1", "arr1", "vmatrix", "vfactor", "factorb", "matrixv"),
    ("w", "c", "gamma", "p", "out", "z", "f3", "factor3", "2", "arr2", "wmatrix", "wfactor", "factorc", "matrixw"),
)
"""Names that people give to the three factors, in lower case and without anything but letters and digits."""


def named_factors(arrays: Mapping[str, Array]) -> tuple[list[Array], tuple[str, ...]] | None:
    """The three factors among named arrays, and how they were identified; None where there are none.

    Raises:
        SchemeFormatError: three arrays have the names of factors, and one is no matrix: another is no whole scheme.
    """
    plain = [name for name, array in arrays.items() if array.ndim in (2, 3)]
    flat = [name for name, array in arrays.items() if array.ndim == 1]
    if found := factor_names(plain) or factor_names(flat):
        return [arrays[name] for name in found], (f"factors {', '.join(found)}",)
    if found := factor_names(arrays):
        unfit = next(name for name in found if name not in plain)
        raise SchemeFormatError(f"{unfit} has shape {arrays[unfit].shape}: a factor is a matrix, (R, entries)")
    if len(plain) == 1 and (stacked := unstacked(arrays[plain[0]])):
        return stacked, ("one array of all three factors",)
    if len(plain) == 3:
        return [arrays[name] for name in plain], (f"arrays {', '.join(plain)} in the order of the file",)
    return None


def check_beside(values: Mapping[str, Any], factors: Sequence[Array]) -> None:
    """Refuse numbers beside three factors that may change them: one a product or an entry, or as many as a factor has.

    All ones and a running number are accepted.

    Raises:
        SchemeFormatError: there are such numbers, as in the `weights` of a decomposition.
    """
    lengths = set.intersection(*(set(factor.shape) for factor in factors))
    shapes = {factor.shape for factor in factors}
    for name, value in values.items():
        array = value if isinstance(value, np.ndarray) else as_array(value)
        if array is None or any(array is factor for factor in factors):
            continue
        numbers, count = array.tolist(), len(array) if array.ndim == 1 else 0
        one_each = count in lengths and numbers not in ([1] * count, list(range(count)), list(range(1, count + 1)))
        if one_each or array.shape in shapes:
            raise SchemeFormatError(f"what the numbers {name[:30]} do to the factors is not known")


def factor_names(names: Iterable[str]) -> list[str]:
    """The names of the three factors among names; empty where there are none."""
    plain = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in names}
    return next(([plain[role] for role in roles] for roles in zip(*ROLES, strict=True) if set(roles) <= set(plain)), [])


def numbered_together(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Named arrays, with the matrices U1, V1, W1, U2, ... of all products as arrays U, V and W of three dimensions.

    Raises:
        SchemeFormatError: the numbers of the three are not the same, or have a gap.
    """
    found: dict[str, dict[int, Array]] = defaultdict(dict)
    for name, array in arrays.items():
        if (match := _NUMBERED.fullmatch(name)) and array.ndim == 2:
            found[match[1]][int(match[2])] = array
    names = factor_names(name for name, parts in found.items() if len(parts) > 1)
    if not names:
        return dict(arrays)
    numbers = {tuple(sorted(found[name])) for name in names}
    first, *_ = min(numbers)
    if first > 1 or any(one != tuple(range(first, first + len(one))) for one in numbers):
        raise SchemeFormatError(f"matrices {', '.join(names)} with numbers that differ or have gaps")
    whole = {name: array_of_rows([part.tolist() for _, part in sorted(found[name].items())]) for name in names}
    others = {name: array for name, array in arrays.items() if name.rstrip("0123456789").rstrip("_") not in names}
    return {**others, **whole}


def unstacked(array: Array) -> list[Array] | None:
    """The three factors of one array: stacked on the first or the last axis, or the second of three."""
    axes = {3: (0, 2, 1), 4: (0,)}.get(array.ndim, ())
    axis = next((axis for axis in axes if array.shape[axis] == 3), None)
    return None if axis is None else [np.take(array, i, axis) for i in range(3)]


def one_array(array: Array) -> list[Array] | None:
    """The factors of one array: `unstacked`, or of square matrices, [U V W] in a row or one below the other."""
    if array.ndim != 2:
        return unstacked(array)
    for axis in (1, 0):
        if (length := array.shape[axis]) and 3 * math.isqrt(length // 3) ** 2 == length:
            return np.split(array, 3, axis=axis)
    return np.split(array, 3) if len(array) % 3 == 0 else None


def reading_of_unlabelled(
    wanted: Wanted, arrays: Sequence[Array], documented: tuple[str, str] | None = None, *, others: bool = False
) -> Reading:
    """The reading of three arrays of numbers, by every way that their shapes allow.

    A format that says how they lie has a `documented` convention and, if they are not rows, what products are; the
    other convention becomes a candidate, too, and with `others` every way that is not documented.

    Raises:
        SchemeFormatError: no way fits; the shapes are named.
    """
    target = wanted.target
    ways = [way for way in _ways(arrays) if target is None or way[2] == target.shape]
    if documented is not None:
        meant = sorted((way for way in ways if way[0] == documented[1]), key=lambda way: way[1] != documented[0])
        rest = [way for way in ways if others and way not in meant]
        ways = [("", by, shape, factors) for _, by, shape, factors in meant] + rest
    shapes = ", ".join(" x ".join(map(str, array.shape)) for array in arrays)
    if not ways:
        of_it = f" for {target}" if target is not None else ""
        raise SchemeFormatError(
            f"arrays of {shapes} fit together in no way{of_it}; wanted are U (R, m k), V (R, k n) and W (R, m n), "
            "or their transposes"
        )
    _, _, first, (left, _, _) = ways[0]
    if documented is None and first == (1, 1, 1) and left.rank > 1:
        raise SchemeFormatError(f"arrays of {shapes} are several products of two numbers: this is no scheme")
    options = [(", ".join(filter(None, (by, lies))), target_of(shape, target), part) for lies, by, shape, part in ways]
    return reading_of_options(wanted, options, unsure=documented is None)


def _ways(arrays: Sequence[Array]) -> Iterator[tuple[str, str, Shape, Factors]]:
    """How three arrays may lie, by C or by C^T, what sizes they have then, and their entries.

    Products as rows come before products as columns, entries by rows before entries by columns.
    """
    dimensions = {array.ndim for array in arrays}
    if dimensions == {1}:
        most = math.gcd(*map(len, arrays))
        for rank in (rank for rank in range(1, min(most, MAX_RANK) + 1) if most % rank == 0):
            entries = [len(array) // rank for array in arrays]
            fitting = _shape([(size,) for size in entries])
            for grid in ((rank, -1), (-1, rank)) if fitting and max(entries) <= rank <= math.prod(fitting) else ():
                ways = _ways([array.reshape(grid) for array in arrays])
                yield from (way for way in ways if way[3][0].rank == rank)
        return
    if len(arrays) != 3 or len(dimensions) != 1 or not dimensions <= {2, 3}:
        return
    flat = dimensions == {2}
    found = [np.nonzero(array) for array in arrays]
    values = [_coefficients(array[at]) for array, at in zip(arrays, found, strict=True)]
    for axes in sorted(product((0, -1), repeat=3), key=lambda axes: (len(set(axes)), -sum(axes))):
        rank, *ranks = (array.shape[axis] for array, axis in zip(arrays, axes, strict=True))
        sizes = [array.shape[1:] if axis == 0 else array.shape[:-1] for array, axis in zip(arrays, axes, strict=True)]
        if ranks != [rank, rank] or not 1 <= rank <= MAX_RANK or not (shape := _shape(sizes)):
            continue
        of = "".join(label for label, axis in zip("UVW", axes, strict=True) if axis)
        where = f"products {'as columns' if flat else 'along the last axis'}{'' if of == 'UVW' else f' of {of}'}"
        m, k, n = shape
        for by_columns in (False, True)[: 1 + flat]:
            lies = ", ".join((where,) * bool(of) + ("entries by columns",) * by_columns)
            grids = [(m, k), (k, n), (m, n), (n, m)]
            parts = []
            for slot, grid in zip((0, 1, 2, 2), grids, strict=True):
                at = found[slot] if axes[slot] == 0 else (found[slot][-1], *found[slot][:-1])
                place = divmod(at[1], grid[not by_columns]) if flat else at[1:]
                row, col = place[::-1] if by_columns else place
                parts.append(Entries(rank, at[0], row, col, values[slot]))
            u, v, w, by_transpose = parts
            if flat or sizes[2] == (m, n):
                yield lies, C, shape, (u, v, w)
            if flat or sizes[2] == (n, m):
                yield lies, C_TRANSPOSED, shape, (u, v, by_transpose.transposed())


def _shape(sizes: Sequence[tuple[int, ...]]) -> Shape | None:
    """The sizes of the product of matrices of so many entries, or of such grids; None where there are none."""
    try:
        m, k, n = shape_of(*map(math.prod, sizes))
    except SchemeFormatError:
        return None
    grids = len(sizes[0]) == 1 or tuple(sizes[:2]) == ((m, k), (k, n))
    return (m, k, n) if grids and max(m, k, n) <= MAX_DIMENSION else None


def _coefficients(values: Array) -> list[Coefficient]:
    """The numbers of an array with one dimension; floats are exact if they are small binary fractions.

    Raises:
        SchemeFormatError: one is no number, not finite, or beyond 2^40.
    """
    if values.dtype.kind in "bui":
        return list(map(int, values.tolist()))
    if values.dtype.kind == "O":
        return list(values.tolist())
    if values.dtype.kind not in "fc" or not (np.abs(values.astype(np.complex128)) < 2.0**40).all():
        raise SchemeFormatError(f"an entry of type {values.dtype} that is no number, not finite, or beyond 2^40")
    return list(map(binary, values.tolist()))


def as_array(rows: Any, most: int = 4) -> Array | None:
    """Nested lists of numbers as an array of at most so many dimensions, of integers or objects; None where ragged."""
    array = np.array(rows, dtype=object) if isinstance(rows, list) else np.array(())
    kinds = set(map(type, array.ravel().tolist()))
    if not 1 <= array.ndim <= most or not kinds or any(issubclass(kind, _NO_NUMBERS) for kind in kinds):
        return None
    if array.size > MAX_ENTRIES:
        raise SchemeFormatError(f"arrays of more than {MAX_ENTRIES} entries")
    small = kinds == {int} and array.min() > -(1 << 62) and array.max() < 1 << 62
    return array.astype(np.int64) if small else array


def array_of_rows(rows: Any) -> Array:
    """The array of rows of numbers.

    Raises:
        SchemeFormatError: their lengths differ.
    """
    if (found := as_array(rows)) is None:
        raise SchemeFormatError("rows of unlike lengths, or none")
    return found
