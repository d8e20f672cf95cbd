"""Kronecker-sparse matrices and their products by definition: the reference for the tests of all fast products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..arrays import zeros
from .blocks import Array, Matrix
from .pattern import Pattern


def support(pattern: Pattern) -> npt.NDArray[np.bool_]:
    """Return I_a (x) 1_{b x c} (x) I_d, (rows, cols)."""
    inner = np.kron(np.ones((pattern.b, pattern.c), bool), np.eye(pattern.d, dtype=bool))
    return np.kron(np.eye(pattern.a, dtype=bool), inner)


def dense_factor(weights: Array, pattern: Pattern) -> Array:
    """Return the matrix (rows, cols) with K[i b d + p d + j, i c d + q d + j] = weights[i, j, p, q], (a, d, b, c)."""
    a, b, c, d = pattern.sizes
    full = zeros((a, b, d, a, c, d), weights)
    for i in range(a):
        for j in range(d):
            full[i, :, j, i, :, j] = weights[i, j]
    return full.reshape(pattern.rows, pattern.cols)


def factor_parameters(matrix: Matrix, pattern: Pattern) -> Matrix:
    """Return the parameters (a, d, b, c) of a matrix (rows, cols); entries outside the support are ignored."""
    a, b, c, d = pattern.sizes
    return np.ascontiguousarray(np.einsum("ibjicj->ijbc", matrix.reshape(a, b, d, a, c, d)))  # a view of diagonals


def multiply(factors: Sequence[Matrix], patterns: Sequence[Pattern], x: Matrix) -> Matrix:
    """Compute K1 K2 ... KL x for x (cols, batch), factor by factor, each by its dense matrix."""
    for weights, pattern in reversed(list(zip(factors, patterns, strict=True))):
        x = dense_factor(weights, pattern) @ x
    return x
