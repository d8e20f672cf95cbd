"""A matrix of numpy arrays that is stored as the factors of a chain, and its files, .npz or .safetensors.

A file has one header tensor of integers, and the factors `factor1` ... `factorL` in the shapes of the structure:

- `patterns` (L, 4): a Kronecker-sparse matrix.
- `block_low_rank` (7): the kind (0 low-rank, 1 Monarch, 2 BLAST), rows, cols, b1, b2, rank, and 1 if Monarch's outputs
  are interleaved; b1 = b2 = 1 for low-rank matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...arguments import PATH, need
from ...errors import PlanError, SchemeFormatError
from ...schemes_db.display import line
from ...schemes_db.masks import refuse_masks
from ..bfloat16 import converted, dtype_of
from ..factor_files import StoredTensor, names_in, save_factors, tensor_in
from .block_low_rank import KINDS, Blast, BlockLowRank, LowRank, Monarch, block_low_rank_of
from .blocks import Matrix
from .chain import FactorChain, KroneckerSparse
from .pattern import Pattern

Structured = FactorChain | Pattern | Sequence[Pattern]
"""A structure, or the patterns of a Kronecker-sparse one."""

DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
"""Dtypes of parameters; the bits of a bfloat16 are stored in uint16."""


@dataclass(frozen=True, eq=False)
class FactoredMatrix:
    """W by the parameters of its factors, left-most first, in the structure's `factor_shapes`, all of one dtype.

    Raises:
        PlanError: a factor's shape or dtype does not match the structure.
    """

    structure: FactorChain
    factors: tuple[Matrix, ...]
    dtype: str

    def __post_init__(self) -> None:
        if not isinstance(self.structure, FactorChain):
            raise PlanError("a factored matrix has a structure; for a list of patterns call FactoredMatrix.of")
        need(tuple | list, factors=self.factors)
        need(str, dtype=self.dtype)
        refuse_masks(factors=self.factors)
        for factor in self.factors:
            need(np.ndarray, factor=factor)
        self.structure.check_factors(self.factors)
        if self.dtype not in DTYPES:
            raise PlanError(f"factors of {self.dtype} are not supported; convert them to one of {', '.join(DTYPES)}")
        storage = np.dtype(np.uint16 if self.dtype == "bfloat16" else self.dtype)
        for place, weights in enumerate(self.factors, 1):
            if weights.dtype != storage:
                raise PlanError(f"factor {place} is {weights.dtype}, not {self.dtype}; convert all to one dtype")

    @classmethod
    def of(cls, structure: Structured, factors: Matrix | Sequence[Matrix]) -> FactoredMatrix:
        """Return the matrix of one factor or of several, left-most first; uint16 are the bits of bfloat16.

        Raises:
            PlanError: as the class, or there is no factor.
        """
        chain = _chain_of(structure)
        refuse_masks(factors=factors)
        given = [factors] if isinstance(factors, np.ndarray) else list(factors)
        if not given:
            raise PlanError(f"{chain.name} needs the parameters of its factors")
        return cls(chain, tuple(map(np.ascontiguousarray, given)), dtype_of(given[0]))

    @classmethod
    def random(
        cls, structure: Structured, seed: int | np.random.Generator = 0, dtype: str = "float32"
    ) -> FactoredMatrix:
        """Return random factors, see `FactorChain.draw`.

        Raises:
            PlanError: the dtype is not supported.
        """
        chain, drawn = _chain_of(structure), dtype if dtype in DTYPES and dtype != "bfloat16" else "float32"
        made = cls(chain, chain.draw(np.random.default_rng(seed), drawn), drawn)
        return made if drawn == dtype else made.astype(dtype)

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns of the factors."""
        return self.structure.patterns

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols) of W."""
        return self.structure.rows, self.structure.cols

    @property
    def kronecker(self) -> FactoredMatrix:
        """The same matrix as a product of factors with parameters (a, d, b, c), reshaped.

        Raises:
            PlanError: the rows of W have another order.
        """
        if self.structure.is_blocked:
            raise PlanError("a Monarch matrix is a Kronecker-sparse chain where it is interleaved; permute its outputs")
        factors = tuple(self.structure.canonical(self.factors))
        return FactoredMatrix(KroneckerSparse(self.patterns), factors, self.dtype)

    @property
    def adjoint(self) -> FactoredMatrix:
        """Return W^H, with copies of the factors of `kronecker`, conjugated and transposed, in reverse order."""
        chain = self.kronecker
        structure, factors, _ = chain.structure.transpose([one.conj() for one in chain.factors])
        return FactoredMatrix(structure, tuple(map(np.ascontiguousarray, factors)), self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of all parameters."""
        return sum(weights.nbytes for weights in self.factors)

    def astype(self, dtype: str) -> FactoredMatrix:
        """Return the matrix with factors of another dtype, rounded to nearest.

        Raises:
            PlanError: imaginary parts would be lost, or the dtype is not supported.
        """
        if dtype not in DTYPES:
            raise PlanError(f"factors of {self.dtype} can't become {dtype}; choose one of {', '.join(DTYPES)}")
        if self.dtype.startswith("complex") and not dtype.startswith("complex"):
            raise PlanError(f"factors of {self.dtype} can't become {dtype}: imaginary parts would be lost")
        factors = tuple(converted(weights, self.dtype, dtype) for weights in self.factors)
        return FactoredMatrix(self.structure, factors, dtype)

    def dense(self) -> Matrix:
        """Return W (rows, cols); of a bfloat16 matrix in float32."""
        factors = self.astype("float32").factors if self.dtype == "bfloat16" else self.factors
        return self.structure.dense(factors)

    def __repr__(self) -> str:
        return line(self._title)

    def _repr_html_(self) -> str:
        """The factors as a table, for a notebook."""
        return self.structure.as_table(self._title)

    @property
    def _title(self) -> str:
        sides = f"{self.shape[0]}x{self.shape[1]}"
        return " ".join([self.structure.name, *[sides] * (sides not in self.structure.name), self.dtype])


def _chain_of(structure: Structured) -> FactorChain:
    return structure if isinstance(structure, FactorChain) else KroneckerSparse.of(structure)


def to_kronecker(matrix: FactoredMatrix) -> FactoredMatrix:
    """Convert a low-rank, interleaved Monarch or BLAST matrix to the chain of its structure, see `Chain.patterns`.

    Raises:
        PlanError: a Monarch matrix is not interleaved.
    """
    need(FactoredMatrix, matrix=matrix)
    return matrix.kronecker


def from_kronecker(matrix: FactoredMatrix) -> FactoredMatrix:
    """Invert `to_kronecker`.

    Raises:
        PlanError: the patterns are those of no low-rank, Monarch or BLAST matrix.
    """
    need(FactoredMatrix, matrix=matrix)
    structure = block_low_rank_of(matrix.patterns)
    if structure is None:
        raise PlanError(
            f"{matrix!r} is no low-rank, Monarch or BLAST matrix; (1, rows, r, 1)(1, r, cols, 1), "
            "(1, q, b1 r, b2)(b1, b2 r, p, 1) or (b2, q, r, 1)(1, b2, b1, r)(b1, r, p, 1) is needed"
        )
    factors = (weights.reshape(shape) for weights, shape in zip(matrix.factors, structure.factor_shapes, strict=True))
    return FactoredMatrix(structure, tuple(factors), matrix.dtype)


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
    try:
        names = names_in(path)
        header = next((header for header in (PATTERNS, BLOCK_LOW_RANK) if header in names), None)
        if header is None:
            raise SchemeFormatError(f"has no array {PATTERNS!r} or {BLOCK_LOW_RANK!r}")
        structure = (_kronecker if header == PATTERNS else _block_low_rank)(tensor_in(path, header))
        factors, kinds = [], []
        for place, shape in enumerate(structure.factor_shapes, 1):
            found = tensor_in(path, name) if (name := f"factor{place}") in names else None
            if found is None or found.shape != shape:
                there = "nothing" if found is None else f"shape {found.shape}"
                raise SchemeFormatError(f"{name} must hold a factor {shape} of {structure.name}, and {there} is there")
            if found.dtype not in DTYPES:
                raise SchemeFormatError(f"{name} is {found.dtype}, which holds no parameters")
            factors.append(found.read())
            kinds.append(found.dtype)
        return FactoredMatrix(structure, tuple(factors), kinds[0])
    except SchemeFormatError as error:
        raise error.located(path) from None
    except PlanError as error:
        raise SchemeFormatError(f"is not a factored matrix: {error}", path) from None


def is_operand_file(path: str | Path) -> bool:
    """Return whether a file contains the header of a factored matrix.

    Raises:
        SchemeFormatError: the file is damaged or truncated.
    """
    given = Path(path)
    return given.is_file() and not {PATTERNS, BLOCK_LOW_RANK}.isdisjoint(names_in(given))


def _header(structure: FactorChain) -> tuple[str, Matrix]:
    """Return the name of the header tensor and its integers."""
    if not isinstance(structure, BlockLowRank):
        return PATTERNS, np.array([pattern.sizes for pattern in structure.patterns], np.int64)
    numbers = structure.rows, structure.cols, structure.b1, structure.b2, structure.rank
    interleaved = isinstance(structure, Monarch) and structure.interleaved
    return BLOCK_LOW_RANK, np.array([list(KINDS).index(structure.kind), *numbers, interleaved], np.int64)


def _whole(name: str, found: StoredTensor) -> list[Any]:
    if not found.dtype.startswith(("int", "uint")):
        raise SchemeFormatError(f"{name} is {found.dtype}; whole numbers are needed")
    return found.read().tolist()


def _kronecker(found: StoredTensor) -> FactorChain:
    shape = found.shape
    if len(shape) != 2 or shape[1] != 4 or not 1 <= shape[0] <= MOST_FACTORS:
        raise SchemeFormatError(f"{PATTERNS} has shape {shape}; (L, 4) with L from 1 to {MOST_FACTORS} is needed")
    return KroneckerSparse(tuple(Pattern(*row) for row in _whole(PATTERNS, found)))


def _block_low_rank(found: StoredTensor) -> FactorChain:
    if found.shape != (7,):
        raise SchemeFormatError(f"{BLOCK_LOW_RANK} has shape {found.shape}; (7,) is needed")
    numbers = _whole(BLOCK_LOW_RANK, found)
    kind, rows, cols, b1, b2, rank, interleaved = numbers
    if kind == 0 and (b1, b2, interleaved) == (1, 1, 0):
        return LowRank(rows, cols, rank)
    if kind == 1 and interleaved in (0, 1):
        return Monarch(rows, cols, b1, b2, rank, interleaved=bool(interleaved))
    if kind == 2 and interleaved == 0:
        return Blast(rows, cols, b1, b2, rank)
    raise SchemeFormatError(f"{BLOCK_LOW_RANK} is {numbers}, which names no structure")
