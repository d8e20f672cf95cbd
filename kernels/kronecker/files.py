"""Kronecker-sparse matrices in files: the tensors `patterns` (L, 4) and `factor1` ... `factorL` of one .npz or
.safetensors file, factors in the canonical layout (a, d, b, c)."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import LcmaError, PlanError, SchemeFormatError
from ...home import write_atomic
from .. import safetensors
from .matrix import KroneckerMatrix
from .pattern import Pattern

Matrix = npt.NDArray[Any]

PATTERNS = "patterns"

MOST_FACTORS = 256

HEADER_BYTES = 1 << 14
"""Bytes that a .npy header may take beside the data of an array."""

UNREADABLE = (zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, EOFError, KeyError, SyntaxError, struct.error)
"""What zipfile and numpy raise on damaged archives and headers; RuntimeError also on encrypted ones."""

KINDS = {"float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "complex64": "C64"}
"""The names of dtypes in .safetensors files."""


def save(path: str | Path, matrix: KroneckerMatrix) -> None:
    """Write a matrix to FILE.npz or FILE.safetensors, atomically.

    Raises:
        PlanError: the suffix is neither, or the format does not hold the dtype.
        LcmaError: the file cannot be written.
    """
    path = Path(path)
    patterns = np.array([pattern.sizes for pattern in matrix.patterns], np.int64)
    tensors = {f"factor{place}": weights for place, weights in enumerate(matrix.factors, 1)}
    if path.suffix == ".npz":
        if matrix.dtype == "bfloat16":
            raise PlanError("a .npz file holds no bfloat16; write a .safetensors file")
        buffer = io.BytesIO()
        np.savez(buffer, **{PATTERNS: patterns, **tensors})  # type: ignore[arg-type]  # numpy's stub of **kwds
        content = buffer.getvalue()
    elif path.suffix == ".safetensors":
        if matrix.dtype not in KINDS:
            raise PlanError(f"a .safetensors file holds no {matrix.dtype}; write a .npz file")
        kind = KINDS[matrix.dtype]
        content = safetensors.pack({PATTERNS: ("I64", patterns), **{name: (kind, x) for name, x in tensors.items()}})
    else:
        raise PlanError(f"{path.name} must end in .npz or .safetensors, to say how the matrix is stored")
    try:
        write_atomic(path, content)
    except OSError as error:
        raise LcmaError(f"{path} can't be written: {error.strerror}") from None


def load(path: str | Path) -> KroneckerMatrix:
    """The matrix of a file that `save` wrote, or one with the same tensors. Sizes are checked before data is read.

    Raises:
        SchemeFormatError: there is no such file, or it holds no Kronecker-sparse matrix.
    """
    path = Path(path)
    try:
        return _from_safetensors(path) if path.suffix == ".safetensors" else _from_npz(path)
    except SchemeFormatError as error:
        raise error.located(path) from None
    except PlanError as error:
        raise SchemeFormatError(f"is not a Kronecker-sparse matrix: {error}", path) from None
    except OSError as error:
        raise SchemeFormatError(f"can't be read: {error.strerror or error}", path) from None


def is_operand_file(path: str | Path) -> bool:
    """Whether a file holds a tensor named `patterns`, as Kronecker-sparse matrices do."""
    path = Path(path)
    try:
        if path.suffix == ".safetensors":
            return PATTERNS in safetensors.entries(path)
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                return f"{PATTERNS}.npy" in archive.namelist()
    except (OSError, SchemeFormatError, *UNREADABLE):
        pass
    return False


def _from_safetensors(path: Path) -> KroneckerMatrix:
    known = safetensors.entries(path)
    names = {kind: name for name, kind in KINDS.items()}
    if PATTERNS not in known or known[PATTERNS].kind not in ("I64", "I32"):
        raise SchemeFormatError(f"has no tensor {PATTERNS!r} of whole numbers", path)
    patterns = _patterns(known[PATTERNS].shape, lambda: safetensors.read(path, known[PATTERNS]))
    factors, dtype = [], ""
    for place, pattern in enumerate(patterns, 1):
        entry = known.get(f"factor{place}")
        if entry is None or entry.shape != pattern.parameter_shape:
            found = "nothing" if entry is None else f"shape {entry.shape}"
            raise _missing(place, pattern, found, path)
        if entry.kind not in names:
            raise SchemeFormatError(f"factor{place} is {entry.kind}, which holds no parameters", path)
        dtype = dtype or names[entry.kind]
        factors.append(np.array(safetensors.read(path, entry)))
    return KroneckerMatrix(patterns, tuple(factors), dtype)


def _from_npz(path: Path) -> KroneckerMatrix:
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist()}
        if f"{PATTERNS}.npy" not in sizes:
            raise SchemeFormatError(f"has no array {PATTERNS!r}", path)
        if sizes[f"{PATTERNS}.npy"] > HEADER_BYTES + 32 * MOST_FACTORS:
            raise SchemeFormatError(f"has more than {MOST_FACTORS} patterns", path)
        with np.load(path, allow_pickle=False) as arrays:
            found = arrays[PATTERNS]
            patterns = _patterns(found.shape, lambda: found)
            factors = []
            for place, pattern in enumerate(patterns, 1):
                size = sizes.get(f"factor{place}.npy")
                if size is None or size > 16 * pattern.nonzeros + HEADER_BYTES:
                    raise _missing(place, pattern, "nothing" if size is None else f"an array of {size} bytes", path)
                weights = arrays[f"factor{place}"]
                if weights.shape != pattern.parameter_shape:
                    raise _missing(place, pattern, f"shape {weights.shape}", path)
                factors.append(np.ascontiguousarray(weights, weights.dtype.newbyteorder("=")))
    except (SchemeFormatError, PlanError):
        raise
    except UNREADABLE as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise SchemeFormatError(f"is not a .npz file: {reason}", path) from None
    return KroneckerMatrix.of(patterns, factors)


def _patterns(shape: tuple[int, ...], read: Callable[[], Matrix]) -> tuple[Pattern, ...]:
    if len(shape) != 2 or shape[1] != 4 or not 1 <= shape[0] <= MOST_FACTORS:
        raise SchemeFormatError(f"{PATTERNS} has shape {shape}; (L, 4) with L from 1 to {MOST_FACTORS} is needed")
    rows = read()
    if rows.dtype.kind not in "iu":
        raise SchemeFormatError(f"{PATTERNS} is {rows.dtype}; whole numbers are needed")
    return tuple(Pattern(*row) for row in rows.tolist())


def _missing(place: int, pattern: Pattern, found: str, path: Path) -> SchemeFormatError:
    wanted = f"the parameters {pattern.parameter_shape} of {pattern}"
    return SchemeFormatError(f"factor{place} must hold {wanted}, and {found} is there", path)
