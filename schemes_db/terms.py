"""Bilinear maps given term by term: read from tensor files, named, and laid on a grid of blocks.

A term (p, q, s, value) says that value A[p] B[q] is added to C[s]; p, q and s count the blocks of
A, B and C row by row, from 0 here and in files, from 1 in names.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ..errors import SchemeFormatError, TargetError

Entry = tuple[int, int, int, int]
Entries = tuple[Entry, ...]
Shape = tuple[int, int, int]

MAX_ENTRIES = 4096
"""The most terms of a map: they stand in the name of its target, and so in every file of a scheme."""

MAX_VALUE = 1 << 31
TENSOR_BYTES = 1 << 20

_TERM = r"([1-9]\d{0,4})\.([1-9]\d{0,4})\.([1-9]\d{0,4})(?:\*(-?\d{1,10}))?"


def checked_entries(entries: Iterable[tuple[int, ...]]) -> Entries:
    """The terms sorted, each once, with no value 0.

    Raises:
        TargetError: there are none, or too many, one stands twice, or a value is too large.
    """
    found = sorted((int(p), int(q), int(s), int(value)) for p, q, s, value in entries)
    if not 1 <= len(found) <= MAX_ENTRIES:
        raise TargetError(f"a map given term by term has 1 to {MAX_ENTRIES} terms, not {len(found)}")
    if len({entry[:3] for entry in found}) != len(found):
        raise TargetError("a map given term by term has a term twice")
    if any(min(entry[:3]) < 0 or not 0 < abs(entry[3]) < MAX_VALUE for entry in found):
        raise TargetError("a term must have places from 0 and a value that is not 0 and below 2^31")
    return tuple(found)


def named(entries: Entries) -> str:
    """The form of a target's name: terms(1.1.1,1.2.2*-1,...), places from 1."""
    parts = [f"{p + 1}.{q + 1}.{s + 1}{'' if value == 1 else f'*{value}'}" for p, q, s, value in entries]
    return f"terms({','.join(parts)})"


def brief(entries: Entries) -> str:
    """A short text in place of all terms: their number and the start of a hash of the full form."""
    return f"terms({len(entries)} #{hashlib.sha256(named(entries).encode()).hexdigest()[:8]})"


def parse_terms(form: str) -> Entries | None:
    """The terms of a form that `named` wrote; None for any other form.

    Raises:
        TargetError: it begins as one, but is none.
    """
    if not (form.startswith("terms(") and form.endswith(")")):
        return None
    parts = form[len("terms(") : -1].split(",")
    if len(parts) > MAX_ENTRIES:
        raise TargetError(f"a map given term by term has 1 to {MAX_ENTRIES} terms, not {len(parts)}")
    entries = []
    for part in parts:
        match = re.fullmatch(_TERM, part, re.ASCII)
        if match is None:
            raise TargetError(f"term {part[:20]!r} must be places of A, B and C from 1, such as 1.4.2 or 1.4.2*-1")
        p, q, s, value = match.groups()
        entries.append((int(p) - 1, int(q) - 1, int(s) - 1, int(value or 1)))
    return checked_entries(entries)


def read_tensor(path: str) -> Entries:
    """The terms of a tensor file, places from 0.

    A .npy array of integers, (T, 4) with a term p, q, s, value a row (as flip-cpd writes them), or
    (a, b, c) with the values themselves; or a text: JSON [[p, q, s, value], ...], or a term a line
    of three places and a value that may be left out when it is 1.

    Raises:
        TargetError: the file can't be read, is too large, or holds something else.
    """
    try:
        with Path(path).open("rb") as stream:
            raw = stream.read(TENSOR_BYTES + 1)
    except OSError as error:
        raise TargetError(f"tensor {path} can't be read: {error.strerror}") from None
    if len(raw) > TENSOR_BYTES:
        raise TargetError(f"tensor {path} is larger than {TENSOR_BYTES >> 20} MiB")
    try:
        return checked_entries(_from_array(raw) if raw.startswith(b"\x93NUMPY") else _from_text(raw.decode()))
    except (TargetError, SchemeFormatError) as error:
        raise TargetError(f"tensor {path}: {error}") from None
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise TargetError(
            f"tensor {path} must be a .npy array of integers, or terms p q s value, one a line or as JSON"
        ) from None


def _from_array(raw: bytes) -> list[tuple[int, ...]]:
    from .formats.archive import array_of

    array = array_of(raw)
    if isinstance(array, list) or array.dtype.kind not in "iu" or array.ndim not in (2, 3):
        raise ValueError
    if array.ndim == 2:
        if array.shape[1] != 4:
            raise ValueError
        return [tuple(row) for row in array.tolist()]
    places = np.argwhere(array)
    values = array[tuple(places.T)].tolist()
    return [(*place, value) for place, value in zip(places.tolist(), values, strict=True)]


def _from_text(text: str) -> list[tuple[int, ...]]:
    if text.lstrip().startswith("["):
        rows = json.loads(text)
    else:
        lines = (line.split("#", 1)[0].replace(",", " ").split() for line in text.splitlines())
        rows = [[int(word) for word in words] for words in lines if words]
    if not all(isinstance(row, list) and len(row) in (3, 4) and all(type(part) is int for part in row) for row in rows):
        raise ValueError
    return [(*row, 1) if len(row) == 3 else tuple(row) for row in rows]


def grid_for(entries: Entries, largest: int) -> Shape:
    """The grid m x k x n with room for all places whose largest matrix is smallest, then with the fewest blocks.

    Raises:
        TargetError: none up to `largest` has room.
    """
    a, b, c = (max(entry[i] for entry in entries) + 1 for i in range(3))
    best: tuple[int, int, Shape] | None = None
    for k in range(1, largest + 1):
        for m in range(-(-a // k), largest + 1):
            n = max(-(-b // k), -(-c // m))
            if n <= largest:
                sizes = m * k, k * n, m * n
                option = max(sizes), sum(sizes), (m, k, n)
                best = option if best is None else min(best, option)
    if best is None:
        raise TargetError(f"a map of {a}, {b} and {c} places fits no grid of at most {largest} blocks a side")
    return best[2]
