"""The element types of a product: their storage, and their type in the kernels of sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .arrays import Matrix
from .precision import arithmetic_of


@dataclass(frozen=True)
class DType:
    """An element type. `storage` is its numpy dtype: numpy has no bfloat16, so its bits are stored in uint16.

    Sums with real coefficients treat an element as `parts` elements of type `component`. `unit` is the
    unit roundoff of products and sums; 0 if they are exact, modulo two to the number of bits.
    """

    name: str
    storage: str
    component: str
    parts: int
    unit: float

    @property
    def exact(self) -> bool:
        return self.unit == 0.0

    @property
    def numpy(self) -> np.dtype[Any]:
        return np.dtype(self.storage)


_TABLE = {
    entry.name: entry
    for entry in (
        DType("float32", "float32", "float32", 1, 2.0**-24),
        DType("float64", "float64", "float64", 1, 2.0**-53),
        DType("complex64", "complex64", "float32", 2, 2.0**-24),
        DType("complex128", "complex128", "float64", 2, 2.0**-53),
        DType("int8", "int8", "int8", 1, 0.0),
        DType("int32", "int32", "int32", 1, 0.0),
        DType("int64", "int64", "int64", 1, 0.0),
        DType("bfloat16", "uint16", "bfloat16", 1, 2.0**-9),
        DType("bit", "uint64", "uint64", 1, 0.0),
        DType("float16", "float16", "float16", 1, 2.0**-11),
    )
}


@lru_cache(maxsize=64)
def dtype_of(name: str) -> DType:
    """Return the entry of the dtype that stores the operands of an arithmetic, by its name."""
    return _TABLE[arithmetic_of(name).dtype]


def stored(matrix: Matrix) -> Matrix:
    """Return the matrix as its storage: an array of the bfloat16 that other packages add to numpy becomes uint16."""
    return matrix.view(np.uint16) if matrix.dtype.name == "bfloat16" else matrix
