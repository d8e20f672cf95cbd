"""Location of a user's files: one folder, LCMA_HOME, with data/, cache/ and profiles/ in it."""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from .errors import LcmaError


def home() -> Path:
    """Return the folder of all of a user's files: $LCMA_HOME, or the platform's folder for user data.

    Raises:
        LcmaError: LCMA_HOME is not set, and platformdirs, which finds the platform's folder, is not installed.
    """
    return _home(os.environ.get("LCMA_HOME", ""))


@lru_cache(maxsize=8)
def _home(chosen: str) -> Path:
    """Return the folder, cached because planning calls this often and platformdirs is slow."""
    if chosen:
        return Path(chosen).expanduser().absolute()
    try:
        import platformdirs
    except ImportError:
        raise LcmaError("set LCMA_HOME to a folder of your own, or install platformdirs") from None
    return Path(platformdirs.user_data_dir("lcma", appauthor=False))


def data_folder() -> Path:
    """Return the folder of the catalogue and of the finds of the user's own searches."""
    return home() / "data"


def cache_folder() -> Path:
    """Return the folder of compiled and generated code; it can be deleted, its files are then generated again."""
    return home() / "cache"


def writable(folder: Path) -> Path:
    """Return `folder` if files can be created in it, else a folder of this process in the temporary directory.

    For caches only: files that must not be lost are written to the folder that the user chose, or not at all.

    Raises:
        OSError: neither can be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return _private_folder()


@lru_cache(maxsize=1)
def _private_folder() -> Path:
    """Create a folder that only this user can write, removed at the end of the process."""
    folder = tempfile.mkdtemp(prefix="lcma-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@contextlib.contextmanager
def exclusive(path: Path, seconds: float = math.inf) -> Iterator[None]:
    """Exclude other processes that use the same lock file. The system releases the lock of a killed process.

    The exclusion is absent where files cannot be locked, and where another process still has the lock after `seconds`.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError, ImportError):
            import fcntl

            path.parent.mkdir(parents=True, exist_ok=True)
            stream, deadline = held.enter_context(path.open("a")), time.monotonic() + seconds
            while time.monotonic() < deadline:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.005)
        yield


def write_atomic(path: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Write a file atomically: write and sync a temporary file of the same folder, then rename it to `path`.

    A link is followed. A FIFO, a device, stdout or stderr is written to directly. Content larger than memory is
    given in chunks.

    Raises:
        OSError: the folder cannot be written, or the disk is full; a regular file at `path` is unchanged.
    """
    payload = content.encode() if isinstance(content, str) else content
    chunks = (payload,) if isinstance(payload, bytes) else payload
    if (stream := _stream(path)) is not None:
        with stream:
            for chunk in chunks:
                stream.write(chunk)
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _stream(path: Path) -> BinaryIO | None:
    """Return a stream to what must not be replaced by a file; None for a regular file, or where there is nothing."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if (descriptor := standard_stream(found)) is not None:
        # A file that stdout is redirected to must be continued: opening it again would start at its first byte.
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        return os.fdopen(os.dup(descriptor), "wb")
    return None if stat.S_ISREG(found.st_mode) else path.open("wb")


def standard_stream(found: os.stat_result) -> int | None:
    """Return the descriptor of stdout or stderr if this is its file, pipe or device."""
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):  # it is closed
            if os.path.samestat(found, os.fstat(descriptor)):
                return descriptor
    return None


def _mode(path: Path) -> int:
    """Return the permissions of a file that is replaced, or those of a new file."""
    with contextlib.suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
