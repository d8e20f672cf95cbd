"""Selection of the scheme files of a folder."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import SchemeFormatError
from ..schemes_db.formats import FORMATS, UnknownFormatError
from ..schemes_db.formats.parts import is_later_part


def files_below(folder: str | Path, format: str | None = None) -> tuple[list[Path], int]:
    """Return the scheme files below a folder, sorted by path, and the number of files without a known suffix.

    Without a format only files with a suffix of some format are included, with one all files; of
    three files that form one scheme only the first. Hidden files and folders are skipped, links to
    folders are not followed.

    Raises:
        SchemeFormatError: a folder cannot be read.
    """
    suffixes = {known.suffix for known in FORMATS.values()}
    found: list[Path] = []
    others = 0
    for where, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            path = Path(where, name)
            if name.startswith(".") or not path.is_file():
                continue
            if format is None and path.suffix not in suffixes:
                others += 1
                continue
            if not is_later_part(path):
                found.append(path)
    return sorted(found), others


def is_of_no_format(error: SchemeFormatError) -> bool:
    """Return whether a file was rejected because nothing in it looks like a scheme, not for a fault in one."""
    return isinstance(error, UnknownFormatError)


def _refuse(error: OSError) -> None:
    raise SchemeFormatError(f"can't be read: {error.strerror}", error.filename)
