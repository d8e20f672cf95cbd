"""Files of Kronecker-sparse matrices: the tensors `patterns` (L, 4) and `factor1` ... `factorL` of one .npz or
.safetensors file, factors in the canonical layout (a, d, b, c).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError, SchemeFormatError
from ..factor_files import Factor, header_of, load_factors, save_factors
from .matrix import KroneckerMatrix
from .pattern import Pattern

Matrix = npt.NDArray[Any]

PATTERNS = "patterns"

MOST_FACTORS = 256


def save(path: str | Path, matrix: KroneckerMatrix) -> None:
    """Write a matrix to FILE.npz or FILE.safetensors, atomically.

    Raises:
        PlanError: the suffix is neither, or the format does not support the dtype.
        LcmaError: the file cannot be written.
    """
    patterns = np.array([pattern.sizes for pattern in matrix.patterns], np.int64)
    save_factors(path, PATTERNS, patterns, matrix.factors, matrix.dtype)


def load(path: str | Path) -> KroneckerMatrix:
    """Load the matrix of a file written by `save`, or one with the same tensors. Sizes are checked before data is read.

    Raises:
        SchemeFormatError: there is no such file, or it contains no Kronecker-sparse matrix.
    """
    path = Path(path)
    patterns: list[Pattern] = []

    def read(shape: tuple[int, ...], loaded: Callable[[], Matrix]) -> Sequence[Factor]:
        patterns.extend(_patterns(shape, loaded))
        return [(one.parameter_shape, f"the parameters {one.parameter_shape} of {one}") for one in patterns]

    try:
        most = f"has more than {MOST_FACTORS} patterns"
        factors, dtype = load_factors(path, PATTERNS, 32 * MOST_FACTORS, most, read)
        return KroneckerMatrix(tuple(patterns), tuple(factors), dtype)
    except SchemeFormatError as error:
        raise error.located(path) from None
    except PlanError as error:
        raise SchemeFormatError(f"is not a Kronecker-sparse matrix: {error}", path) from None
    except OSError as error:
        raise SchemeFormatError(f"can't be read: {error.strerror or error}", path) from None


def is_operand_file(path: str | Path) -> bool:
    """Return whether a file contains a tensor named `patterns`, as Kronecker-sparse matrices do."""
    return header_of(path, (PATTERNS,)) is not None


def _patterns(shape: tuple[int, ...], read: Callable[[], Matrix]) -> tuple[Pattern, ...]:
    if len(shape) != 2 or shape[1] != 4 or not 1 <= shape[0] <= MOST_FACTORS:
        raise SchemeFormatError(f"{PATTERNS} has shape {shape}; (L, 4) with L from 1 to {MOST_FACTORS} is needed")
    rows = read()
    if rows.dtype.kind not in "iu":
        raise SchemeFormatError(f"{PATTERNS} is {rows.dtype}; whole numbers are needed")
    return tuple(Pattern(*row) for row in rows.tolist())
