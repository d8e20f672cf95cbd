"""Factored matrices in .npz and .safetensors files: one header tensor of integers, and `factor1` ... `factorL`."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import LcmaError, PlanError, SchemeFormatError
from ..home import write_atomic
from . import safetensors
from .arrays import Matrix

UNREADABLE = (zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, EOFError, KeyError, SyntaxError, struct.error)
"""Exceptions of zipfile and numpy for damaged archives and headers; RuntimeError also for encrypted ones."""


@dataclass(frozen=True)
class StoredTensor:
    """A tensor of a file: the name of its dtype, its shape, and the function that reads its data."""

    dtype: str
    shape: tuple[int, ...]
    read: Callable[[], Matrix]


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
        if dtype not in safetensors.KINDS:
            raise PlanError(f"a .safetensors file holds no {dtype}; write a .npz file")
        rows = {header: ("I64", sizes), **{name: (safetensors.KINDS[dtype], x) for name, x in tensors.items()}}
        content = safetensors.pack(rows)
    else:
        raise PlanError(f"{path} must end in .npz or .safetensors, to say how the matrix is stored")
    try:
        write_atomic(path, content)
    except OSError as error:
        raise LcmaError(f"{path} can't be written: {error.strerror}") from None


def names_in(path: Path) -> Collection[str]:
    """Return the names of the tensors of a file; none if it is neither .npz nor .safetensors.

    Raises:
        SchemeFormatError: the file cannot be read, or is damaged or truncated.
    """
    with readable(path):
        path.stat()  # a file that is not there can't be read, whatever its suffix
        if path.suffix == ".safetensors":
            return safetensors.entries(path)
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                return {name.removesuffix(".npy") for name in archive.namelist()}
    return ()


def tensor_in(path: Path, name: str) -> StoredTensor:
    """Return a tensor of a file that has one of this name, without its data.

    Raises:
        SchemeFormatError: the file cannot be read, or is damaged or truncated.
    """
    with readable(path):
        if path.suffix == ".safetensors":
            entry = safetensors.entries(path)[name]
            dtype = safetensors.NAMES[entry.kind]
            return StoredTensor(dtype, entry.shape, lambda: np.array(safetensors.read(path, entry)))
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
            old = np.lib.format.read_magic(stream) == (1, 0)
            read_header = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
            shape, _, kind = read_header(stream)
        return StoredTensor(kind.name, shape, lambda: _array(path, name))


def _array(path: Path, name: str) -> Matrix:
    with readable(path), zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
        found: Matrix = np.lib.format.read_array(stream, allow_pickle=False)
        return np.ascontiguousarray(found, found.dtype.newbyteorder("="))


@contextmanager
def readable(path: str | Path, fault: str = "is damaged or cut off") -> Iterator[None]:
    """Turn what reading a file may raise into a SchemeFormatError, which says `fault` of a file that is damaged."""
    try:
        yield
    except SchemeFormatError:
        raise
    except OSError as error:
        raise SchemeFormatError(f"can't be read: {error.strerror or error}", path) from None
    except (*UNREADABLE, TypeError, AttributeError, PlanError) as error:  # the last three: it holds other arrays
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise SchemeFormatError(f"{fault}: {reason}", path) from None
