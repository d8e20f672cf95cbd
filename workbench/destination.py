"""Files that a user names for results: one rule for all commands on what may be written where."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ..errors import LcmaError
from ..home import data_folder, standard_stream, write_atomic
from .output import given

FORCE = "lcma.force"
"""The key of --force in the context of a command line."""


class DestinationError(LcmaError):
    """A file that must not be written: it exists, is an input of the command, or is a folder."""

    exit_code = 3


def claim(path: str | Path | None, inputs: Iterable[str | Path] = (), force: bool | None = None) -> None:
    """Check that a result may be written to `path` (None: nowhere); a link means the file that it points to.

    stdout, stderr, a FIFO and a device are written to without a question. Another file that exists is replaced with
    `force` (default: that of the command line), or where the user at the terminal agrees; an input and the catalogue
    are never replaced.

    Raises:
        DestinationError: the file must not be written.
        LcmaError: the path leads nowhere.
    """
    if path is None:
        return
    with writing(path):
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return
    # A terminal may be the input and the output of one command.
    if not stat.S_ISCHR(found.st_mode):
        for source in (*inputs, data_folder() / "catalog.db"):
            if _is(found, source):
                raise DestinationError(f"{path} is the same file as {source}, and would lose it; name another file")
    if stat.S_ISDIR(found.st_mode):
        raise DestinationError(f"{path} is a folder; name a file")
    forced = given(FORCE) if force is None else force
    if forced or not stat.S_ISREG(found.st_mode) or standard_stream(found) is not None:
        return
    terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    if not (terminal and click.confirm(f"{path} exists. Replace it?", err=True)):
        raise DestinationError(f"{path} exists and was left as it is; name another file, or replace it by --force")


def claim_folder(path: str | Path) -> None:
    """Check that there is a folder at `path`, or nothing.

    Raises:
        DestinationError: there is a file.
    """
    if os.path.exists(path) and not os.path.isdir(path):
        raise DestinationError(f"{path} is a file; name a folder")


def _is(found: os.stat_result, path: str | Path) -> bool:
    try:
        return os.path.samestat(found, os.stat(path))
    except (OSError, ValueError):  # a name of a scheme that is no file
        return False


def write(path: str | Path, content: str | bytes | Iterable[bytes]) -> None:
    """Write a result to a claimed path.

    Raises:
        LcmaError: it can't be written.
    """
    with writing(path):
        write_atomic(Path(path), content)


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Name the path where it can't be written.

    Raises:
        LcmaError: it can't.
    """
    try:
        yield
    except OSError as error:
        raise LcmaError(f"{path} can't be written: {error.strerror or error}") from None
