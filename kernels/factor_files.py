"""Factored matrices in .npz and .safetensors files: one header tensor of integers, and `factor1` ... `factorL`.

Sizes are checked before data is read; the family of a matrix defines its header.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import LcmaError, PlanError, SchemeFormatError
from ..home import write_atomic
from . import safetensors
from .arrays import Matrix

HEADER_BYTES = 1 << 14
"""Maximum bytes of a .npy header in addition to the data of an array."""

UNREADABLE = (zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, EOFError, KeyError, SyntaxError, struct.error)
"""Exceptions of zipfile and numpy for damaged archives and headers; RuntimeError also for encrypted ones."""

KINDS = {"float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "complex64": "C64"}
"""The names of dtypes in .safetensors files."""

Factor = tuple[tuple[int, ...], str]
"""The required shape of a factor, and its description."""

ReadHeader = Callable[[tuple[int, ...], Callable[[], Matrix]], Sequence[Factor]]
"""read_header(shape, read): the factors that a header of this shape defines; `read` loads it."""


def save_factors(path: str | Path, header: str, sizes: Matrix, factors: Sequence[Matrix], dtype: str) -> None:
    """Write a header and factors to FILE.npz or FILE.safetensors, atomically.

    Raises:
        PlanError: the suffix is neither, or the format does not support the dtype.
        LcmaError: the file cannot be written.
    """
    path = Path(path)
    tensors = {f"factor{place}": weights for place, weights in enumerate(factors, 1)}
    if path.suffix == ".npz":
        if dtype == "bfloat16":
            raise PlanError("a .npz file holds no bfloat16; write a .safetensors file")
        buffer = io.BytesIO()
        np.savez(buffer, **{header: sizes, **tensors})  # type: ignore[arg-type]  # numpy's stub of **kwds
        content = buffer.getvalue()
    elif path.suffix == ".safetensors":
        if dtype not in KINDS:
            raise PlanError(f"a .safetensors file holds no {dtype}; write a .npz file")
        rows = {header: ("I64", sizes), **{name: (KINDS[dtype], x) for name, x in tensors.items()}}
        content = safetensors.pack(rows)
    else:
        raise PlanError(f"{path} must end in .npz or .safetensors, to say how the matrix is stored")
    try:
        write_atomic(path, content)
    except OSError as error:
        raise LcmaError(f"{path} can't be written: {error.strerror}") from None


def load_factors(path: Path, header: str, most_bytes: int, too_long: str, read: ReadHeader) -> tuple[list[Matrix], str]:
    """Load the factors of a file and their dtype; `most_bytes` bounds the header, `too_long` describes a longer one.

    Raises:
        SchemeFormatError: there is no such file, or it does not contain these factors.
        PlanError: the header defines no matrix.
        OSError: the file cannot be read.
    """
    if path.suffix == ".safetensors":
        return _from_safetensors(path, header, read)
    return _from_npz(path, header, most_bytes, too_long, read)


def header_of(path: str | Path, headers: Sequence[str]) -> str | None:
    """Return the first of these header tensors in a file; None if it has none, or is no .npz or .safetensors.

    Raises:
        SchemeFormatError: the file is damaged or truncated.
    """
    path = Path(path)
    names: Mapping[str, Any] | set[str] = set()
    if not path.is_file():
        return None
    try:
        if path.suffix == ".safetensors":
            names = safetensors.entries(path)
        elif path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                names = {name.removesuffix(".npy") for name in archive.namelist()}
    except SchemeFormatError:
        raise
    except (OSError, *UNREADABLE) as error:
        reason = error.strerror if isinstance(error, OSError) else next(iter(str(error).splitlines()), "")
        raise SchemeFormatError(f"is damaged or cut off: {reason}", path) from None
    return next((header for header in headers if header in names), None)


def _from_safetensors(path: Path, header: str, read: ReadHeader) -> tuple[list[Matrix], str]:
    known = safetensors.entries(path)
    names = {kind: name for name, kind in KINDS.items()}
    if header not in known or known[header].kind not in ("I64", "I32"):
        raise SchemeFormatError(f"has no tensor {header!r} of whole numbers", path)
    found, dtype = [], ""
    for place, (shape, text) in enumerate(read(known[header].shape, lambda: safetensors.read(path, known[header])), 1):
        entry = known.get(f"factor{place}")
        if entry is None or entry.shape != shape:
            there = "nothing" if entry is None else f"shape {entry.shape}"
            raise _missing(place, text, there, path)
        if entry.kind not in names:
            raise SchemeFormatError(f"factor{place} is {entry.kind}, which holds no parameters", path)
        dtype = dtype or names[entry.kind]
        found.append(np.array(safetensors.read(path, entry)))
    return found, dtype


def _from_npz(path: Path, header: str, most_bytes: int, too_long: str, read: ReadHeader) -> tuple[list[Matrix], str]:
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist()}
        if f"{header}.npy" not in sizes:
            raise SchemeFormatError(f"has no array {header!r}", path)
        if sizes[f"{header}.npy"] > HEADER_BYTES + most_bytes:
            raise SchemeFormatError(too_long, path)
        with np.load(path, allow_pickle=False) as arrays:
            given = arrays[header]
            found = []
            for place, (shape, text) in enumerate(read(given.shape, lambda: given), 1):
                size = sizes.get(f"factor{place}.npy")
                if size is None or size > 16 * int(np.prod(shape)) + HEADER_BYTES:
                    raise _missing(place, text, "nothing" if size is None else f"an array of {size} bytes", path)
                weights = arrays[f"factor{place}"]
                if weights.shape != shape:
                    raise _missing(place, text, f"shape {weights.shape}", path)
                found.append(np.ascontiguousarray(weights, weights.dtype.newbyteorder("=")))
    except (SchemeFormatError, PlanError):
        raise
    except UNREADABLE as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise SchemeFormatError(f"is not a .npz file: {reason}", path) from None
    return found, found[0].dtype.name


def _missing(place: int, wanted: str, found: str, path: Path) -> SchemeFormatError:
    return SchemeFormatError(f"factor{place} must hold {wanted}, and {found} is there", path)
