"""Conversion of a factor's parameters between the canonical layout (a, d, b, c) and the layouts of other code.

- bmm: (a d, b, c), the batched operand of the permuted product; the same memory as the canonical layout.
- kernel: (a d c, b), every dense block transposed, for kernels that read rows of K^T.
- abcd: (a, b, c, d), entry [i, p, q, j] of K viewed as a x (b x c) x d; how the reference layer stores parameters.
- dense: (rows, cols), the whole matrix, zero outside the pattern's support.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...arguments import need
from ...errors import PlanError, unknown_name
from ...schemes_db.masks import refuse_masks
from ..bfloat16 import float32_of
from .naive import dense_factor, factor_parameters
from .pattern import Pattern

Matrix = npt.NDArray[Any]

LAYOUTS = ("canonical", "bmm", "kernel", "abcd", "dense")


def layout_shape(pattern: Pattern, layout: str) -> tuple[int, ...]:
    """Return the shape of a factor's parameters in a layout.

    Raises:
        PlanError: there is no such layout.
    """
    need(Pattern, pattern=pattern)
    need(str, layout=layout)
    a, b, c, d = pattern.sizes
    shapes: dict[str, tuple[int, ...]] = {
        "canonical": (a, d, b, c),
        "bmm": (a * d, b, c),
        "kernel": (a * d * c, b),
        "abcd": (a, b, c, d),
        "dense": (pattern.rows, pattern.cols),
    }
    if layout not in shapes:
        raise unknown_name("layout", layout, LAYOUTS)
    return shapes[layout]


def from_layout(weights: Matrix, pattern: Pattern, layout: str) -> Matrix:
    """Convert parameters in another layout to (a, d, b, c); uint16 are the bits of bfloat16.

    Raises:
        PlanError: there is no such layout, the array does not have its shape, or a dense matrix has nonzero entries
            outside the pattern's support.
    """
    refuse_masks(weights=weights)
    wanted = layout_shape(pattern, layout)
    need(np.ndarray, weights=weights)
    if weights.shape != wanted:
        raise PlanError(f"parameters of {pattern} in layout {layout} have shape {wanted}, not {weights.shape}")
    a, b, c, d = pattern.sizes
    if layout == "kernel":
        return np.ascontiguousarray(weights.reshape(a, d, c, b).swapaxes(2, 3))
    if layout == "abcd":
        return np.ascontiguousarray(weights.transpose(0, 3, 1, 2))
    if layout == "dense":
        _require_support(weights, pattern)
        return factor_parameters(weights, pattern)
    return weights.reshape(a, d, b, c)


def _require_support(matrix: Matrix, pattern: Pattern) -> None:
    """Check that a matrix (rows, cols) is zero outside a pattern's support.

    Raises:
        PlanError: it is not; the message has the part outside, relative in the Frobenius norm.
    """
    a, b, c, d = pattern.sizes
    numbers = float32_of(matrix) if matrix.dtype == np.uint16 else matrix
    rest = np.array(numbers, order="C")
    blocks = rest.reshape(a, b, d, a, c, d)
    for i in range(a):
        for j in range(d):
            blocks[i, :, j, i, :, j] = 0
    if not rest.any():
        return
    peak = np.abs(numbers).max()  # squares of the scaled entries neither overflow nor vanish
    outside, whole = (float(np.linalg.norm(np.abs(part) / peak)) for part in (rest, numbers))
    raise PlanError(
        f"the matrix is not zero outside the support of {pattern}: {outside / whole:.2g} of its Frobenius norm is "
        "there; KSLinear.from_dense approximates a dense layer, lcma.kronecker.factorize a matrix"
    )


def to_layout(weights: Matrix, pattern: Pattern, layout: str) -> Matrix:
    """Convert parameters (a, d, b, c) to another layout; the inverse of `from_layout`.

    Raises:
        PlanError: there is no such layout, or the parameters do not match the pattern.
    """
    wanted = layout_shape(pattern, layout)
    need(np.ndarray, weights=weights)
    if weights.shape != pattern.parameter_shape:
        raise PlanError(f"parameters of {pattern} have shape {pattern.parameter_shape}, not {weights.shape}")
    if layout == "kernel":
        return np.ascontiguousarray(weights.swapaxes(2, 3)).reshape(wanted)
    if layout == "abcd":
        return np.ascontiguousarray(weights.transpose(0, 2, 3, 1))
    if layout == "dense":
        return dense_factor(weights, pattern)
    return weights.reshape(wanted)
