"""Conversion of a factor's parameters between the canonical layout (a, d, b, c) and the layouts of other code.

- bmm: (a d, b, c), the batched operand of the permuted product; the same memory as the canonical layout.
- kernel: (a d c, b), every dense block transposed, for kernels that read rows of K^T.
- abcd: (a, b, c, d), entry [i, p, q, j] of K viewed as a x (b x c) x d; how the reference layer stores parameters.
- dense: (rows, cols), the whole matrix, zero outside the pattern's support.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ...arguments import need
from ...errors import PlanError, unknown_name
from ...schemes_db.masks import refuse_masks
from ..bfloat16 import float32_of
from .blocks import Matrix
from .naive import dense_factor, factor_parameters, support
from .pattern import Pattern

LAYOUTS = {"canonical": "a d b c", "bmm": "ad b c", "kernel": "adc b", "abcd": "a b c d", "dense": "abd acd"}
"""The axes of the sizes of every layout; the dense matrix has zeros too."""


def shape_of(axes: str, extents: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of an array with these axes: "ad b c" has the sizes a d, b and c."""
    return tuple(math.prod(extents[axis] for axis in group) for group in axes.split())


def rearranged(weights: Matrix, given: str, wanted: str, extents: Mapping[str, int]) -> Matrix:
    """Return the array with the axes `given` as a contiguous one with the axes `wanted`."""
    letters = given.replace(" ", "")
    order = [letters.index(axis) for axis in wanted.replace(" ", "")]
    split = weights.reshape([extents[axis] for axis in letters])
    return np.ascontiguousarray(split.transpose(order)).reshape(shape_of(wanted, extents))


def _layout(pattern: Pattern, layout: str) -> tuple[str, dict[str, int]]:
    """Return the axes of a layout, and their sizes."""
    need(Pattern, pattern=pattern)
    need(str, layout=layout)
    if layout not in LAYOUTS:
        raise unknown_name("layout", layout, LAYOUTS)
    return LAYOUTS[layout], dict(zip("abcd", pattern.sizes, strict=True))


def from_layout(weights: Matrix, pattern: Pattern, layout: str) -> Matrix:
    """Convert parameters in another layout to (a, d, b, c); uint16 are the bits of bfloat16.

    Raises:
        PlanError: there is no such layout, the array does not have its shape, or a dense matrix has nonzero entries
            outside the pattern's support.
    """
    refuse_masks(weights=weights)
    axes, extents = _layout(pattern, layout)
    need(np.ndarray, weights=weights)
    if weights.shape != (wanted := shape_of(axes, extents)):
        raise PlanError(f"parameters of {pattern} in layout {layout} have shape {wanted}, not {weights.shape}")
    if layout == "dense":
        _require_support(weights, pattern)
        return factor_parameters(weights, pattern)
    return rearranged(weights, axes, LAYOUTS["canonical"], extents)


def _require_support(matrix: Matrix, pattern: Pattern) -> None:
    """Check that a matrix (rows, cols) is zero outside a pattern's support; the message has the part that is not."""
    numbers = float32_of(matrix) if matrix.dtype == np.uint16 else matrix
    rest = np.where(support(pattern), np.zeros((), numbers.dtype), numbers)
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
    axes, extents = _layout(pattern, layout)
    need(np.ndarray, weights=weights)
    if weights.shape != pattern.parameter_shape:
        raise PlanError(f"parameters of {pattern} have shape {pattern.parameter_shape}, not {weights.shape}")
    if layout == "dense":
        return dense_factor(weights, pattern)
    return rearranged(weights, LAYOUTS["canonical"], axes, extents)
