"""Which files of a folder are scheme files."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import SchemeFormatError
from ..schemes_db.formats import FORMATS, UnknownFormatError
from ..schemes_db.formats.plinopt import companions


def files_below(folder: str | Path, format: str | None = None) -> tuple[list[Path], int]:
    """The scheme files below a folder, sorted by path, and how many files were left out.

    Without a format the files with a suffix of some format are included, with one all of them; of
    three files that make one scheme the first. Hidden files and folders are left out, links to
    folders are not followed.

    Raises:
        SchemeFormatError: a folder cannot be read.
    """
    suffixes = {known.SUFFIX for known in FORMATS.values()}
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
            parts = companions(path)
            if not parts or parts[0] == path:
                found.append(path)
    return sorted(found), others


def is_of_no_format(error: SchemeFormatError) -> bool:
    """Whether a file was refused because nothing in it looks like a scheme, and not for a fault in one."""
    return isinstance(error, UnknownFormatError)


def _refuse(error: OSError) -> None:
    raise SchemeFormatError(f"can't be read: {error.strerror}", error.filename)
