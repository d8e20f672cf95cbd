"""Files of factored matrices, .npz or .safetensors: one header tensor of integers, and the factors `factor1` ...
`factorL` in the shapes of the structure.

- `patterns` (L, 4): a Kronecker-sparse matrix.
- `block_low_rank` (7): the kind (0 low-rank, 1 Monarch, 2 BLAST), rows, cols, b1, b2, rank, and 1 if Monarch's outputs
  are interleaved; b1 = b2 = 1 for low-rank matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...arguments import PATH, need
from ...errors import PlanError, SchemeFormatError
from ..factor_files import Factor, header_of, load_factors, save_factors
from .block_low_rank import KINDS, Blast, BlockLowRank, LowRank, Monarch
from .blocks import Matrix
from .chain import FactorChain, KroneckerSparse
from .matrix import FactoredMatrix
from .pattern import Pattern

PATTERNS, BLOCK_LOW_RANK = "patterns", "block_low_rank"

MOST_FACTORS = 256


def save(path: str | Path, matrix: FactoredMatrix) -> None:
    """Write a matrix to FILE.npz or FILE.safetensors, atomically.

    Raises:
        PlanError: the suffix is neither, or the format does not support the dtype.
        LcmaError: the file cannot be written.
    """
    need(PATH, path=path)
    need(FactoredMatrix, matrix=matrix)
    save_factors(path, *_header(matrix.structure), matrix.factors, matrix.dtype)


def load(path: str | Path) -> FactoredMatrix:
    """Load the matrix of a file written by `save`, or one with the same tensors. Sizes are checked before data is read.

    Raises:
        SchemeFormatError: there is no such file, or it contains no factored matrix.
    """
    need(PATH, path=path)
    path = Path(path)
    found: list[FactorChain] = []
    try:
        header = header_of(path, (PATTERNS, BLOCK_LOW_RANK))
        if header is None and path.is_file():
            raise SchemeFormatError(f"has no array {PATTERNS!r} or {BLOCK_LOW_RANK!r}", path)
        parse, most = (_kronecker, 32 * MOST_FACTORS) if header != BLOCK_LOW_RANK else (_block_low_rank, 8 * 7)

        def read(shape: tuple[int, ...], loaded: Callable[[], Matrix]) -> Sequence[Factor]:
            found.append(structure := parse(shape, loaded))
            return [(one, f"a factor {one} of {structure.name}") for one in structure.factor_shapes]

        factors, dtype = load_factors(path, header or PATTERNS, most, f"has more than {most} bytes of {header}", read)
        return FactoredMatrix(found[0], tuple(factors), dtype)
    except SchemeFormatError as error:
        raise error.located(path) from None
    except PlanError as error:
        raise SchemeFormatError(f"is not a factored matrix: {error}", path) from None
    except OSError as error:
        raise SchemeFormatError(f"can't be read: {error.strerror or error}", path) from None


def is_operand_file(path: str | Path) -> bool:
    """Return whether a file contains the header of a factored matrix.

    Raises:
        SchemeFormatError: the file is damaged or truncated.
    """
    return header_of(path, (PATTERNS, BLOCK_LOW_RANK)) is not None


def _header(structure: FactorChain) -> tuple[str, Matrix]:
    """Return the name of the header tensor and its integers."""
    if not isinstance(structure, BlockLowRank):
        return PATTERNS, np.array([pattern.sizes for pattern in structure.patterns], np.int64)
    numbers = structure.rows, structure.cols, structure.b1, structure.b2, structure.rank
    interleaved = isinstance(structure, Monarch) and structure.interleaved
    return BLOCK_LOW_RANK, np.array([list(KINDS).index(structure.kind), *numbers, interleaved], np.int64)


def _whole(name: str, read: Callable[[], Matrix]) -> list[Any]:
    numbers = read()
    if numbers.dtype.kind not in "iu":
        raise SchemeFormatError(f"{name} is {numbers.dtype}; whole numbers are needed")
    rows: list[Any] = numbers.tolist()
    return rows


def _kronecker(shape: tuple[int, ...], read: Callable[[], Matrix]) -> FactorChain:
    if len(shape) != 2 or shape[1] != 4 or not 1 <= shape[0] <= MOST_FACTORS:
        raise SchemeFormatError(f"{PATTERNS} has shape {shape}; (L, 4) with L from 1 to {MOST_FACTORS} is needed")
    return KroneckerSparse(tuple(Pattern(*row) for row in _whole(PATTERNS, read)))


def _block_low_rank(shape: tuple[int, ...], read: Callable[[], Matrix]) -> FactorChain:
    if shape != (7,):
        raise SchemeFormatError(f"{BLOCK_LOW_RANK} has shape {shape}; (7,) is needed")
    numbers = _whole(BLOCK_LOW_RANK, read)
    kind, rows, cols, b1, b2, rank, interleaved = numbers
    if kind == 0 and (b1, b2, interleaved) == (1, 1, 0):
        return LowRank(rows, cols, rank)
    if kind == 1 and interleaved in (0, 1):
        return Monarch(rows, cols, b1, b2, rank, interleaved=bool(interleaved))
    if kind == 2 and interleaved == 0:
        return Blast(rows, cols, b1, b2, rank)
    raise SchemeFormatError(f"{BLOCK_LOW_RANK} is {numbers}, which names no structure")
