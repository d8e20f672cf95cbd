"""Sparse rational .npz: every factor in CSR arrays `u_indptr, u_indices, u_numerators, u_denominators`.

`metadata_json` says {"tensor": [m, k, n], "rank": R}. Rows are products, or the entries of a
matrix; the lengths decide which. The third factor is read as indexed by C first, then by its transpose.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from ...errors import SchemeFormatError
from ..gaussian import Number
from .archive import Archive, is_archive_of
from .candidates import reading_of_rows, sizes_and_rank
from .reading import C, Reading, Wanted
from .strict_json import loads


def sniff(raw: bytes) -> bool:
    """Return whether this is a zip archive with numerators, denominators and metadata."""
    return is_archive_of(raw, "u_indptr", "u_numerators", "u_denominators", "metadata_json")


def parse(raw: bytes, wanted: Wanted) -> list[Reading]:
    """Read one scheme; both conventions become candidates.

    Raises:
        SchemeFormatError: an array is missing or not of the lengths that the others say.
    """
    archive = Archive(raw, wanted.allow_pickle)
    metadata = loads(_metadata(archive))
    if not isinstance(metadata, dict):
        raise SchemeFormatError("metadata_json must be an object")
    (m, k, n), rank = sizes_and_rank(metadata, "tensor", "rank", "metadata_json")
    u, v, w = (_rows(archive, key, rank, entries) for key, entries in (("u", m * k), ("v", k * n), ("w", m * n)))
    return [reading_of_rows(wanted, (u, v, w), (m, k, n), C)]


def _metadata(archive: Archive) -> str:
    """The text of metadata_json, kept as one string or as its bytes."""
    array = archive.array("metadata_json")
    if isinstance(array, list) or array.dtype != np.uint8:
        return archive.text("metadata_json")
    try:
        return array.tobytes().decode("utf-8")
    except UnicodeDecodeError:
        raise SchemeFormatError("metadata_json is not UTF-8 text") from None


def _rows(archive: Archive, key: str, rank: int, entries: int) -> list[list[tuple[int, Number]]]:
    indptr, indices, numerators, denominators = (
        archive.integers(f"{key}_{part}").tolist() for part in ("indptr", "indices", "numerators", "denominators")
    )
    by_product = len(indptr) == rank + 1
    if not by_product and len(indptr) != entries + 1:
        raise SchemeFormatError(
            f"{key}_indptr has {len(indptr)} items; {rank} products or {entries} entries need one more"
        )
    if not len(indices) == len(numerators) == len(denominators) == indptr[-1] or indptr[0] != 0:
        raise SchemeFormatError(f"{key}: indptr, indices, numerators and denominators do not fit together")
    if any(a > b for a, b in pairwise(indptr)) or 0 in denominators:
        raise SchemeFormatError(f"{key}: indptr must not fall, and no denominator may be 0")
    rows: list[list[tuple[int, Number]]] = [[] for _ in range(rank)]
    for outer in range(len(indptr) - 1):
        for place in range(indptr[outer], indptr[outer + 1]):
            r, index = (outer, indices[place]) if by_product else (indices[place], outer)
            if not (0 <= r < rank and 0 <= index < entries):
                raise SchemeFormatError(f"{key} names entry {index} of product {r}, which is not there")
            rows[r].append((index, Fraction(numerators[place], denominators[place])))
    return rows
