""".npy arrays and .npz archives. The sizes that an archive's directory claims are checked before it is unpacked, those
of an array's header before the array is made.
"""

from __future__ import annotations

import io
import math
import re
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...errors import SchemeFormatError

if TYPE_CHECKING:
    from zipfile import ZipFile

NPY_MAGIC = b"\x93NUMPY"
ZIP_MAGIC = b"PK\x03\x04"
MAX_UNPACKED_BYTES = 256 << 20
MAX_MEMBERS = 4096

_MAX_HEADER = 1 << 16
_HEADER = (
    r"\{'descr':\s*'(?P<dtype>[<>|=]?(?:b1|i[1248]|u[1248]|f[248]|c8|c16|O|U\d{1,8}|S\d{1,8}))',"
    r"\s*'fortran_order':\s*(?P<fortran>True|False),\s*'shape':\s*\((?P<shape>[\d, ]*)\),?\s*\}\s*"
)

Array = npt.NDArray[np.generic]


def array_of(raw: bytes, allow_pickle: bool = False, where: str = "the array") -> Array | list[Array]:
    """The array of a .npy file; a list of arrays for an object array.

    Raises:
        SchemeFormatError: not such a file, of an array that no scheme file has, its length is not what the header
            claims, or it holds objects and `allow_pickle` is not set.
    """
    if not raw.startswith(NPY_MAGIC) or len(raw) < 12 or raw[6] not in (1, 2, 3):
        raise SchemeFormatError(f"{where} is not a .npy array")
    width = 2 if raw[6] == 1 else 4
    length = int.from_bytes(raw[8 : 8 + width], "little")
    start = 8 + width + length
    match = re.fullmatch(_HEADER, raw[8 + width : start].decode("latin-1")) if length < _MAX_HEADER else None
    if match is None:
        raise SchemeFormatError(f"{where} has a header that is not one of an array of numbers, texts or objects")
    sizes = [size for size in match["shape"].replace(" ", "").split(",") if size]
    if len(sizes) > 4 or any(len(size) > 12 for size in sizes):
        raise SchemeFormatError(f"{where} claims the shape ({match['shape'][:60]})")
    if match["dtype"].endswith("O"):
        if not allow_pickle:
            raise SchemeFormatError(
                f"{where} holds pickled objects; with --allow-pickle they are read, as arrays of numbers and no more"
            )
        from .pickled import unpickled

        return unpickled(raw[start:])
    shape, dtype = tuple(map(int, sizes)), np.dtype(match["dtype"])
    if (claimed := math.prod(shape) * dtype.itemsize) != len(raw) - start:
        raise SchemeFormatError(f"{where} claims {claimed} bytes of data, but has {max(len(raw) - start, 0)}")
    return np.ndarray(shape, dtype, raw, start, order="F" if match["fortran"] == "True" else "C")


class Archive:
    """A .npz archive: member names without `.npy`, and their arrays one by one.

    Raises:
        SchemeFormatError: not a plain zip archive, too many members, or too large once unpacked.
    """

    def __init__(self, raw: bytes, allow_pickle: bool = False) -> None:
        self.raw, self.allow_pickle = raw, allow_pickle
        self._check_directory()

    def _check_directory(self) -> None:
        """Refuse a central directory that is too large, before the zip module makes an object of each entry."""
        end = self.raw.rfind(b"PK\x05\x06", max(len(self.raw) - (1 << 16) - 22, 0))
        if end < 0 or len(self.raw) < end + 22:
            raise SchemeFormatError("a zip archive without its directory; the file is cut short")
        if b"PK\x06\x07" in self.raw[max(end - 20, 0) : end]:
            raise SchemeFormatError("a zip64 archive, which no file of this size needs")
        if int.from_bytes(self.raw[end + 12 : end + 16], "little") > 256 * MAX_MEMBERS:
            raise SchemeFormatError(f"a zip archive of more than {MAX_MEMBERS} members")

    @cached_property
    def _zip(self) -> ZipFile:
        import zipfile

        try:
            archive = zipfile.ZipFile(io.BytesIO(self.raw))
        except Exception as error:  # the zip module raises a dozen kinds on damaged archives
            raise SchemeFormatError(f"not a zip archive: {_brief(error)}") from None
        members = archive.infolist()
        if len(members) > MAX_MEMBERS:
            raise SchemeFormatError(f"a zip archive of more than {MAX_MEMBERS} members")
        if len({member.filename for member in members}) != len(members):
            raise SchemeFormatError("a zip archive with two members of one name")
        if any(member.flag_bits & 1 or member.compress_type not in (0, 8) for member in members):
            raise SchemeFormatError("a zip archive that is encrypted, or packed otherwise than by deflate")
        if (total := sum(member.file_size for member in members)) > MAX_UNPACKED_BYTES:
            raise SchemeFormatError(
                f"would unpack to {total >> 20} MiB; the most that is read is {MAX_UNPACKED_BYTES >> 20} MiB"
            )
        return archive

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The keys of the arrays, in the order of the file."""
        return tuple(name.removesuffix(".npy") for name in self._zip.namelist() if name.endswith(".npy"))

    def array(self, key: str) -> Array | list[Array]:
        """The array of a key.

        Raises:
            SchemeFormatError: there is none, or as `array_of`.
        """
        if key not in self.names:
            raise SchemeFormatError(f"the archive has no array {key!r}")
        where = f"array {key!r}"
        try:
            raw = self._zip.read(f"{key}.npy")
        except Exception as error:  # as above: bad checksums, bad streams, bad local headers
            raise SchemeFormatError(f"{where} can't be unpacked: {_brief(error)}") from None
        return array_of(raw, self.allow_pickle, where)

    def integers(self, key: str, dimensions: tuple[int, ...] = (1,)) -> Array:
        """The array of a key, which must be of integers and of one of these numbers of dimensions.

        Raises:
            SchemeFormatError: it is of another kind.
        """
        array = self.array(key)
        if isinstance(array, list) or array.dtype.kind not in "iu" or array.ndim not in dimensions:
            raise SchemeFormatError(f"array {key!r} must be of integers, of {dimensions[-1]} dimensions at most")
        return array

    def text(self, key: str) -> str:
        """A text kept as an array of one string.

        Raises:
            SchemeFormatError: there is no such text.
        """
        array = self.array(key)
        if isinstance(array, list) or array.size != 1 or array.dtype.kind not in "US":
            raise SchemeFormatError(f"array {key!r} must be one text")
        try:
            # numpy makes a string of any 32-bit numbers, and fails inside CPython where they are no characters.
            coding = "utf-8" if array.dtype.kind == "S" else "utf-32-be" if array.dtype.str[0] == ">" else "utf-32-le"
            return array.tobytes().decode(coding).rstrip("\0")
        except UnicodeDecodeError:
            raise SchemeFormatError(f"array {key!r} must be one text") from None


def _brief(error: Exception) -> str:
    return (str(error) or type(error).__name__).split("\n")[0][:100]


def is_archive_of(raw: bytes, *members: str) -> bool:
    """Return whether the file is a zip archive whose directory names these arrays."""
    return raw.startswith(ZIP_MAGIC) and all(f"{member}.npy".encode() in raw[-(1 << 20) :] for member in members)
