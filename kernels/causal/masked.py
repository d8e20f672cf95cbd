"""A B where a mask wants it, zero elsewhere."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.grids import KINDS, Kind
from ..codegen.certified import SchemeLike
from ..plans import AUTO, executor_for
from ..request import Request
from ..structure import DENSE, BlockMask
from .arrays import Array, on_device, through_numpy

Matrix = npt.NDArray[Any]
Mask = npt.ArrayLike


def masked_matmul(a: Array, b: Array, mask: Mask, *, scheme: SchemeLike | None = None) -> Array:
    """A B where the mask wants it, zero elsewhere.

    a (..., M, K), b (..., K, N). `mask` is a boolean array (p, q) of blocks, ceil(M / p) high and
    ceil(N / q) wide, so that (M, N) is a mask of elements; or p texts of q letters: F or 1 full,
    L lower triangle, U upper triangle, 0 or . absent. Rows without anything wanted are zero.
    `scheme`: one for this mask. Without, one from the catalogue is used where it saves a tenth of
    the products of large blocks; else what is wanted of a row of blocks is one GEMM a run.

    Raises:
        PlanError: the operands do not fit each other or the mask, or the scheme is for another mask.
    """
    kinds = _kinds(mask)
    if on_device(a, b):
        raise PlanError("masked products are worked on the processor; move the operands there with .cpu()")
    return through_numpy(lambda x, y: _multiply(x, y, kinds, scheme), a, b)


def _kinds(mask: Mask) -> npt.NDArray[np.int8]:
    """The kinds of all blocks."""
    if isinstance(mask, (list, tuple)) and mask and all(isinstance(row, str) for row in mask):
        letters = KINDS | {"1": Kind.FULL, "0": Kind.ABSENT}
        rows = [[letters.get(letter) for letter in row] for row in mask]
        if len({len(row) for row in rows}) != 1 or any(kind is None for row in rows for kind in row):
            raise PlanError("a mask in letters must be rows of equal length of the characters 1, 0, F, L, U and .")
        return np.array(rows, np.int8)
    array = np.asarray(mask)
    if array.ndim != 2 or array.dtype != bool:
        raise PlanError(f"mask must be a 2-d boolean array or rows of letters, not {array.ndim}-d {array.dtype}")
    return array.astype(np.int8)


def _multiply(a: Matrix, b: Matrix, kinds: npt.NDArray[np.int8], scheme: SchemeLike | None) -> Matrix:
    structures = (DENSE, DENSE, BlockMask.of(kinds))
    request = Request.of(a, b, structures=structures)
    return cast(Matrix, executor_for(request, AUTO if scheme is None else scheme).run(a, b))
