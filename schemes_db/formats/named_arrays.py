"""numpy files as people save them: .npz with U, V and W under any usual names, and .npy with all three in one array."""

from __future__ import annotations

from ...errors import SchemeFormatError
from ..ring import Ring
from ..target import Target
from .archive import NPY_MAGIC, ZIP_MAGIC, Archive, Array, array_of
from .arrays import named_factors, one_array, reading_of_unlabelled
from .reading import Reading

_KINDS = "biufcO"
"""Kinds of dtypes that hold numbers."""


def sniff(raw: bytes) -> bool:
    """Return whether this is a .npy array, or a zip archive of such."""
    return raw.startswith(NPY_MAGIC) or (raw.startswith(ZIP_MAGIC) and b".npy" in raw[-(1 << 20) :])


def parse(
    raw: bytes, target: Target | None = None, ring: Ring | None = None, allow_pickle: bool = False
) -> list[Reading]:
    """Read one scheme.

    Raises:
        SchemeFormatError: no three arrays that could be factors; what there is is named.
    """
    if raw.startswith(NPY_MAGIC):
        read = {"": array_of(raw, allow_pickle)}
    else:
        archive = Archive(raw, allow_pickle)
        read = {name: archive.array(name) for name in archive.names}
    return [reading_of_arrays(read, target, ring)]


def reading_of_arrays(read: dict[str, Array | list[Array]], target: Target | None, ring: Ring | None) -> Reading:
    """The reading of arrays, or lists of them, under names.

    Raises:
        SchemeFormatError: no three of them could be factors; what there is is named.
    """
    for name, array in read.items():
        if isinstance(array, list) and (len(array) == 3 or not name):
            return reading_of_unlabelled("arrays-npz", array, target, ring, (f"array {name}",) if name else ())
    arrays = {name: array for name, array in read.items() if not isinstance(array, list) and array.dtype.kind in _KINDS}
    found = named_factors(arrays)
    if not found and len(arrays) == 1 and (parts := one_array(next(iter(arrays.values())))):
        found = parts, ("one array of all three factors",)
    if found:
        return reading_of_unlabelled("arrays-npz", found[0], target, ring, found[1])
    shapes = ", ".join(f"{name} {array.shape}" for name, array in list(arrays.items())[:6])
    raise SchemeFormatError(
        f"arrays {shapes or '(none of numbers)'}: wanted are three with the names U, V and W, or factors in one array, "
        "such as (3, R, entries), or three files beside each other, such as U.npy, V.npy and W.npy"
    )
