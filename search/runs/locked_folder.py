"""Folder that only one process at a time writes."""

from __future__ import annotations

import contextlib
import errno
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ...errors import LcmaError


class RunFolderError(LcmaError):
    """A run folder that is locked, made by other code, damaged or full."""

    exit_code = 3


class LockedFolder:
    """An open folder, with its lock unless it was opened for reading."""

    def __init__(self, path: Path, lock: BinaryIO | None) -> None:
        self.path, self._lock = path, lock

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def running(self) -> bool:
        """True if a process has locked the folder."""
        try:
            locked(self.path).close()
        except RunFolderError:
            return True
        return False


def new_folder(path: str | Path) -> Path:
    """Return a folder for a new run, created if it does not exist.

    Raises:
        RunFolderError: it contains a run already, or a file that a run would replace, or can't be written.
    """
    path = Path(path)
    if (path / "run.json").exists():
        raise RunFolderError(f"{path} holds a run already: go on with `lcma resume {path}`, or name another folder")
    for name in ("found.jsonl", "start.json", "starts.jsonl", "state.json", "state.npz"):
        # A run that was killed as it began leaves an empty list of finds.
        if (place := path / name).is_symlink() or (place.exists() and place.stat().st_size):
            raise RunFolderError(f"{path} holds {name}, which a run would replace: name another folder")
    with reported(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


def locked(path: Path) -> BinaryIO:
    """Open and lock the lock file; the system releases the lock when the process ends in any way.

    Raises:
        RunFolderError: another process has locked it, or the folder can't be written.
    """
    import fcntl

    with reported(path):
        stream = (path / "lock").open("a+b")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        stream.seek(0)
        holder = stream.read(64).decode(errors="replace").strip()
        stream.close()
        raise RunFolderError(f"{path} is in use by process {holder or 'unknown'}: wait for it, or stop it") from None
    return stream


def signed(lock: BinaryIO) -> BinaryIO:
    """Write this process's id to the lock file, for the error message of a second process; return the file."""
    with contextlib.suppress(OSError):
        lock.truncate(0)
        lock.write(str(os.getpid()).encode())
        lock.flush()
    return lock


DAMAGE = (
    LcmaError,
    OSError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
    EOFError,
    RecursionError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions of what reads a file that is damaged, or uses values in it that cannot be."""


def drop_torn_line(path: Path) -> None:
    """Remove an incomplete last line, left by a crash: its round is repeated, which finds its scheme again.

    Raises:
        RunFolderError: the file can't be read or written.
    """
    with reported(path.parent), path.open("r+b") as stream:
        content = stream.read()
        stream.truncate(content.rfind(b"\n") + 1)


def complete_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers and lines of a file, without an incomplete last line, left by a crash.

    Raises:
        RunFolderError: it can't be read.
    """
    with reported(path.parent):
        content = path.read_bytes()
    for number, line in enumerate(content.splitlines(keepends=True), 1):
        if line.endswith(b"\n"):
            yield number, line


@contextlib.contextmanager
def intact(path: Path) -> Iterator[None]:
    """Convert the errors of reading and using a file's content to RunFolderError."""
    try:
        yield
    except RunFolderError:
        raise
    except DAMAGE as error:
        fault = str(error).partition("\n")[0][:200] or type(error).__name__
        raise RunFolderError(f"{path} is damaged: {fault}") from None


@contextlib.contextmanager
def reported(path: Path) -> Iterator[None]:
    """Convert errors of the file system to RunFolderError, with the remedy."""
    try:
        yield
    except OSError as error:
        mend = "free some space, then " if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else ""
        raise RunFolderError(
            f"{path} can't be written or read ({error.strerror}): {mend}`lcma resume {path}` continues the run; "
            f"what is recorded there is intact"
        ) from None
