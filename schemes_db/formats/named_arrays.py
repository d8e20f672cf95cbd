"""numpy files as people save them: .npz with U, V and W under any usual names, and .npy with all three in one array."""

from __future__ import annotations

from ...errors import SchemeFormatError
from ..ring import Ring
from ..target import Target
from .archive import NPY_MAGIC, ZIP_MAGIC, Archive, Array, array_of
from .arrays import named_factors, reading_of_unlabelled, side_by_side, unstacked
from .reading import C, Reading

NAME = "arrays-npz"
SUFFIX = ".npz"
CONVENTION = C

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
    for name, array in read.items():
        if isinstance(array, list) and (len(array) == 3 or not name):
            return [reading_of_unlabelled(NAME, array, target, ring, (f"array {name}",) if name else ())]
    arrays = {name: array for name, array in read.items() if not isinstance(array, list) and array.dtype.kind in _KINDS}
    if found := named_factors(arrays):
        return [reading_of_unlabelled(NAME, found[0], target, ring, found[1])]
    shapes = ", ".join(f"{name} {array.shape}" for name, array in list(arrays.items())[:6])
    if len(arrays) != 1:
        raise SchemeFormatError(f"arrays {shapes or '(none of numbers)'}: name three of them U, V and W")
    (array,) = arrays.values()
    if parts := unstacked(array) or side_by_side(array):
        return [reading_of_unlabelled(NAME, parts, target, ring, ("one array of all three factors",))]
    raise SchemeFormatError(
        f"an array of shape {array.shape}, {array.dtype}: wanted are three factors in one, such as "
        "(3, R, entries), or three files beside each other, such as U.npy, V.npy and W.npy"
    )


def reading_of_three(arrays: list[Array | list[Array]], target: Target | None, ring: Ring | None) -> Reading:
    """The reading of three .npy files.

    Raises:
        SchemeFormatError: they are no factors of one scheme.
    """
    found = [array for array in arrays if not isinstance(array, list) and array.dtype.kind in _KINDS]
    if len(found) != len(arrays):
        raise SchemeFormatError("three files that are not arrays of numbers")
    return reading_of_unlabelled(NAME, found, target, ring)
