"""AlphaTensor's .npz: for every key "n,m,p" three arrays (entries, R) whose COLUMNS are products, C transposed.

Rectangular ones are object arrays, which are pickles: they are read only when pickles are allowed,
and then as arrays of numbers and nothing else. Schemes that hold mod 2 only look like the others.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from ...errors import SchemeFormatError
from .archive import ZIP_MAGIC, Archive
from .arrays import reading_of_unlabelled
from .candidates import shape_of, target_of
from .reading import C_TRANSPOSED, Reading, Wanted

_KEY = r"(?a)(\d{1,3}),\s?(\d{1,3}),\s?(\d{1,3})"


def sniff(raw: bytes) -> bool:
    """Return whether this is a zip archive that names a member such as 2,2,2.npy."""
    return raw.startswith(ZIP_MAGIC) and re.search(rb"\d,\s?\d{1,3},\s?\d{1,3}\.npy", raw[-(1 << 20) :]) is not None


def parse(raw: bytes, wanted: Wanted) -> list[Reading]:
    """Read every scheme; both conventions become candidates. A target picks the schemes of its size.

    Raises:
        SchemeFormatError: a key or an array is none of these, or a pickle is met that is not allowed.
    """
    archive, target = Archive(raw, wanted.allow_pickle), wanted.target
    readings = []
    for key in archive.names:
        match = re.fullmatch(_KEY, key)
        if match is None:
            raise SchemeFormatError(f'array {key!r}: keys must be sizes, such as "2,3,4"')
        m, k, n = map(int, match.groups())
        if target is not None and target.shape != (m, k, n):
            continue
        found = archive.array(key)
        if not isinstance(found, list) and found.ndim != 3:
            raise SchemeFormatError(f"array {key!r} must be three arrays (entries, R), not of shape {found.shape}")
        arrays = [np.asarray(part) for part in found]
        if len(arrays) != 3 or any(part.ndim != 2 for part in arrays):
            raise SchemeFormatError(f"array {key!r} must be three arrays (entries, R)")
        if shape_of(*(part.shape[0] for part in arrays)) != (m, k, n):
            raise SchemeFormatError(f"array {key!r} does not have the entries of its sizes")
        chosen = dataclasses.replace(wanted, target=target_of((m, k, n), target))
        documented = C_TRANSPOSED, "products as columns"
        readings.append(reading_of_unlabelled(chosen, arrays, documented).noting(f"key {key}"))
    if not readings:
        raise SchemeFormatError("no scheme of that target in the archive" if target else "an empty archive")
    return readings
