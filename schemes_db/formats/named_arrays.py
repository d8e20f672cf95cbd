"""numpy files as people save them: .npz with U, V and W under any usual names, and .npy with all three in one array."""

from __future__ import annotations

from ...errors import SchemeFormatError
from .archive import NPY_MAGIC, ZIP_MAGIC, Archive, Array, array_of
from .arrays import check_beside, named_factors, one_array, reading_of_unlabelled
from .patterns import check_setting
from .reading import Reading, Wanted

_KINDS = "biufcO"
"""Kinds of dtypes that hold numbers."""


def sniff(raw: bytes) -> bool:
    """Return whether this is a .npy array, or a zip archive of such."""
    return raw.startswith(NPY_MAGIC) or (raw.startswith(ZIP_MAGIC) and b".npy" in raw[-(1 << 20) :])


def parse(raw: bytes, wanted: Wanted) -> list[Reading]:
    """Read one scheme.

    Raises:
        SchemeFormatError: no three arrays that could be factors; what there is is named.
    """
    if raw.startswith(NPY_MAGIC):
        read = {"": array_of(raw, wanted.allow_pickle)}
    else:
        archive = Archive(raw, wanted.allow_pickle)
        read = {name: archive.array(name) for name in archive.names}
    return [reading_of_arrays(read, wanted)]


def reading_of_arrays(read: dict[str, Array | list[Array]], wanted: Wanted) -> Reading:
    """The reading of arrays, or lists of them, under names.

    Raises:
        SchemeFormatError: no three of them could be factors; what there is is named.
    """
    for name, array in read.items():
        if isinstance(array, list) and (len(array) == 3 or not name):
            return reading_of_unlabelled(wanted, array).noting(name and f"array {name}")
    arrays = {name: array for name, array in read.items() if not isinstance(array, list) and array.dtype.kind in _KINDS}
    found = named_factors(arrays)
    if not found and len(arrays) == 1 and (parts := one_array(next(iter(arrays.values())))):
        found = parts, ("one array of all three factors",)
    if found:
        others = {name: array for name, array in arrays.items() if not any(array is one for one in found[0])}
        for name, array in others.items():
            check_setting(name, array.tolist())
        check_beside(others, found[0])
        return reading_of_unlabelled(wanted, found[0]).noting(*found[1])
    shapes = ", ".join(f"{name} {array.shape}" for name, array in list(arrays.items())[:6])
    raise SchemeFormatError(
        f"arrays {shapes or '(none of numbers)'}: wanted are three with the names U, V and W, or factors in one array, "
        "such as (3, R, entries), or three files beside each other, such as U.npy, V.npy and W.npy"
    )
