"""Files of block low-rank matrices: the tensor `block_low_rank` (7 integers) and the factors `factor1` ... in the
canonical layout, of one .npz or .safetensors file.

The integers: the kind (0 low-rank, 1 Monarch, 2 BLAST), rows, cols, b1, b2, rank, and 1 if Monarch's outputs are
interleaved; b1 = b2 = 1 for low-rank matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError, SchemeFormatError
from ..factor_files import Factor, load_factors, save_factors
from .block_low_rank import Blast, BlockLowRank, LowRank, Monarch
from .block_low_rank_matrix import BlockLowRankMatrix

Matrix = npt.NDArray[Any]

HEADER = "block_low_rank"

KINDS = ("low-rank", "monarch", "blast")


def save(path: str | Path, matrix: BlockLowRankMatrix) -> None:
    """Write a matrix to FILE.npz or FILE.safetensors, atomically.

    Raises:
        PlanError: the suffix is neither, or the format does not support the dtype.
        LcmaError: the file cannot be written.
    """
    save_factors(path, HEADER, _header(matrix.structure), matrix.factors, matrix.dtype)


def load(path: str | Path) -> BlockLowRankMatrix:
    """Load the matrix of a file written by `save`, or one with the same tensors. Sizes are checked before data is read.

    Raises:
        SchemeFormatError: there is no such file, or it contains no block low-rank matrix.
    """
    path = Path(path)
    found: list[BlockLowRank] = []

    def read(shape: tuple[int, ...], loaded: Callable[[], Matrix]) -> Sequence[Factor]:
        found.append(structure := _structure(shape, loaded))
        return [(one, f"a factor {one} of {structure.name}") for one in structure.factor_shapes]

    try:
        factors, dtype = load_factors(path, HEADER, 8 * 7, f"has more than 7 numbers in {HEADER}", read)
        return BlockLowRankMatrix(found[0], tuple(factors), dtype)
    except SchemeFormatError as error:
        raise error.located(path) from None
    except PlanError as error:
        raise SchemeFormatError(f"is not a block low-rank matrix: {error}", path) from None
    except OSError as error:
        raise SchemeFormatError(f"can't be read: {error.strerror or error}", path) from None


def _header(structure: BlockLowRank) -> Matrix:
    place = KINDS.index(structure.kind)
    if isinstance(structure, LowRank):
        return np.array([place, structure.rows, structure.cols, 1, 1, structure.rank, 0], np.int64)
    return np.array([place, *structure.sizes, *([0] if isinstance(structure, Blast) else [])], np.int64)


def _structure(shape: tuple[int, ...], read: Callable[[], Matrix]) -> BlockLowRank:
    if shape != (7,):
        raise SchemeFormatError(f"{HEADER} has shape {shape}; (7,) is needed")
    numbers = read()
    if numbers.dtype.kind not in "iu":
        raise SchemeFormatError(f"{HEADER} is {numbers.dtype}; whole numbers are needed")
    kind, rows, cols, b1, b2, rank, interleaved = numbers.tolist()
    if kind == 0 and (b1, b2, interleaved) == (1, 1, 0):
        return LowRank(rows, cols, rank)
    if kind == 1 and interleaved in (0, 1):
        return Monarch(rows, cols, b1, b2, rank, interleaved=bool(interleaved))
    if kind == 2 and interleaved == 0:
        return Blast(rows, cols, b1, b2, rank)
    raise SchemeFormatError(f"{HEADER} is {numbers.tolist()}, which names no structure")
