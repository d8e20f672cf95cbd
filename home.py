"""Where a user's files live: one folder, LCMA_HOME, with data/, cache/ and profiles/ in it."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from .errors import LcmaError


def home() -> Path:
    """The folder of everything a user owns: $LCMA_HOME, or the platform's place for user data.

    Raises:
        LcmaError: LCMA_HOME is not set, and platformdirs, which knows that place, is not installed.
    """
    return _home(os.environ.get("LCMA_HOME", ""))


@lru_cache(maxsize=8)
def _home(chosen: str) -> Path:
    """Planning asks for it often, and platformdirs takes longer than a look into a cache."""
    if chosen:
        return Path(chosen).expanduser().absolute()
    try:
        import platformdirs
    except ImportError:
        raise LcmaError("set LCMA_HOME to a folder of your own, or install platformdirs") from None
    return Path(platformdirs.user_data_dir("lcma", appauthor=False))


def data_folder() -> Path:
    """Where the catalogue and the finds of the user's own searches are kept."""
    return home() / "data"


def cache_folder() -> Path:
    """Where compiled and generated code is kept; deleting it loses nothing but time."""
    return home() / "cache"


def writable(folder: Path) -> Path:
    """`folder` if files can be made in it, else one of this process in the temporary directory.

    For caches only: what must not be lost is written where the user said, or not at all.

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
    """A new folder that nobody else can write or have made, removed at the end of the process."""
    folder = tempfile.mkdtemp(prefix="lcma-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def write_atomic(path: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Write a file whole or not at all: a temporary sibling, synced, then renamed over `path`.

    Content larger than memory is given in chunks.

    Raises:
        OSError: the folder cannot be written, or the disk is full; `path` is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    payload = content.encode() if isinstance(content, str) else content
    chunks = (payload,) if isinstance(payload, bytes) else payload
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
