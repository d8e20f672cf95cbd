"""Tensors in .safetensors files: eight bytes with the length of a JSON header, the header, then raw bytes.

Source: the format's own page, https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SchemeFormatError
from .arrays import Matrix

MOST_HEADER = 100_000_000
"""Maximum bytes of a header; the format's own limit."""

MOST_DIMENSIONS = 32

METADATA = "__metadata__"
"""The key of a header that maps to texts, not to a tensor."""

STORAGE = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "C64": "<c8",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U8": "|u1",
    "BOOL": "|b1",
}
"""The numpy dtype that stores an element, by the format's name; bfloat16 is stored as the bits in 16-bit integers."""

NAMES = {kind: "bfloat16" if kind == "BF16" else np.dtype(storage).name for kind, storage in STORAGE.items()}
KINDS = {name: kind for kind, name in NAMES.items()}
"""The format's names of dtypes, by ours."""


@dataclass(frozen=True)
class TensorEntry:
    """A tensor of a file: the format's name of its dtype, its shape, and the position of its bytes in the file."""

    kind: str
    shape: tuple[int, ...]
    start: int
    stop: int


def entries(path: Path) -> dict[str, TensorEntry]:
    """Return the tensors of a file by name, without reading their data.

    Raises:
        SchemeFormatError: the file is not of this format.
        OSError: it cannot be read.
    """
    size = os.stat(path).st_size
    header, begin = _header(path, size)
    try:
        return {name: _entry(name, row, begin, size) for name, row in header.items() if name != METADATA}
    except (ValueError, TypeError, KeyError) as error:
        raise SchemeFormatError(f"is not a .safetensors file: {error}".splitlines()[0][:200], path) from None


def metadata(path: Path) -> dict[str, str]:
    """Return the metadata texts of a file.

    Raises:
        SchemeFormatError: the file is not of this format.
        OSError: it cannot be read.
    """
    found = _header(path, os.stat(path).st_size)[0].get(METADATA, {})
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise SchemeFormatError("is not a .safetensors file: its metadata are no texts", path)
    return found


def _header(path: Path, size: int) -> tuple[dict[str, Any], int]:
    """Return the JSON object before the tensors, and the position of the first tensor's bytes."""
    with open(path, "rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or not 2 <= length <= min(MOST_HEADER, size - 8):
            raise SchemeFormatError("is not a .safetensors file: its header has no length that it could have", path)
        text = stream.read(length)
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
        if not isinstance(header, dict):
            raise ValueError("its header is no object")
    except (ValueError, RecursionError) as error:
        raise SchemeFormatError(f"is not a .safetensors file: {error}".splitlines()[0][:200], path) from None
    return header, 8 + length


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("its header names a tensor twice")
    return found


def _entry(name: str, row: Mapping[str, Any], begin: int, size: int) -> TensorEntry:
    kind, shape, (start, stop) = row["dtype"], row["shape"], row["data_offsets"]
    if kind not in STORAGE:
        raise ValueError(f"tensor {name[:40]!r} has the dtype {str(kind)[:20]!r}, which is not known here")
    if not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS or not all(map(_is_size, (*shape, start, stop))):
        raise ValueError(f"tensor {name[:40]!r} has a shape or a place that is none")
    wanted = math.prod(shape) * np.dtype(STORAGE[kind]).itemsize
    if stop - start != wanted or begin + stop > size:
        raise ValueError(f"tensor {name[:40]!r} needs {wanted} bytes, and the file does not hold them at its place")
    return TensorEntry(kind, tuple(shape), begin + start, begin + stop)


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def read(path: Path, entry: TensorEntry) -> Matrix:
    """Return the tensor of an entry, memory-mapped and read-only, as its storage dtype."""
    if entry.start == entry.stop:
        return np.empty(entry.shape, STORAGE[entry.kind])
    flat = np.memmap(path, np.uint8, "r", entry.start, (entry.stop - entry.start,))
    return np.asarray(flat).view(STORAGE[entry.kind]).reshape(entry.shape)


def pack(tensors: Mapping[str, tuple[str, Matrix]]) -> bytes:
    """Return the file of tensors by name, each with the format's name of its dtype."""
    return b"".join(chunks(tensors, {}))


def chunks(tensors: Mapping[str, tuple[str, Matrix]], metadata: Mapping[str, str]) -> Iterator[bytes]:
    """Yield the file piece by piece, with texts as metadata; one tensor is in memory at a time."""
    header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    place = 0
    for name, (kind, matrix) in tensors.items():
        size = matrix.size * np.dtype(STORAGE[kind]).itemsize
        header[name] = {"dtype": kind, "shape": list(matrix.shape), "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the tensors begin at a multiple of eight bytes
    yield len(text).to_bytes(8, "little")
    yield text
    for kind, matrix in tensors.values():
        yield np.ascontiguousarray(matrix, STORAGE[kind]).tobytes()
