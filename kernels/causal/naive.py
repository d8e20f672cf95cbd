"""Triangular products in plain numpy or torch: the reference for the fast ones."""

from __future__ import annotations

from ...schemes_db.symmetry import Triangle
from ..arrays import Array


def plain(a: Array, b: Array, triangle: Triangle) -> Array:
    """Compute the triangular product by definition: the full product, with zeros outside the triangle."""
    if triangle.side == "left":
        return triangular(a, triangle.upper) @ b
    if triangle.side == "right":
        return a @ triangular(b, triangle.upper)
    return triangular(a @ b, triangle.upper)


def triangular(matrix: Array, upper: bool) -> Array:
    """Return one triangle of matrices, zero outside it."""
    if hasattr(matrix, "tril"):
        return matrix.triu() if upper else matrix.tril()
    import numpy as np

    return np.triu(matrix) if upper else np.tril(matrix)
