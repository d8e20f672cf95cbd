"""The SQLite file of the catalogue: opened for several processes, its schema brought up to date."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import CatalogError
from ..home import data_folder
from .migrations import STEPS, migrate

LOCK_SECONDS = 30.0
"""Seconds that a process waits for another that writes."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection to the catalogue at `path`, made if missing and brought to the newest schema.

    Raises:
        CatalogError: a newer lcma wrote it.
        sqlite3.DatabaseError: it is no SQLite file, or can't be written.
    """
    connection = sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None)
    try:
        _refuse_newer(connection, path)
        _use_write_ahead_log(connection)
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def copy_in_memory(path: Path) -> sqlite3.Connection | None:
    """A copy of a catalogue that can't be written, brought to the newest schema; None where there is no such file.

    Raises:
        CatalogError: a newer lcma wrote it.
        sqlite3.DatabaseError, OSError: it can't be read.
    """
    log = path.with_name(f"{path.name}-wal")
    try:
        path.open("rb").close()  # SQLite does not say why it can't open a file
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return _copied(path, "mode=ro")
    except sqlite3.OperationalError:  # the index of a log can't be made there
        if not log.exists() or not log.stat().st_size:
            return _copied(path, "mode=ro&immutable=1")
    with tempfile.TemporaryDirectory(prefix="lcma-") as folder:
        for file in (path, log):
            shutil.copyfile(file, Path(folder, file.name))
        return _copied(Path(folder, path.name), "mode=rw")


def _copied(path: Path, how: str) -> sqlite3.Connection:
    memory = sqlite3.connect(":memory:", isolation_level=None)
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)) as source:
        _refuse_newer(source, path)
        source.backup(memory)
    migrate(memory)
    return memory


def _refuse_newer(connection: sqlite3.Connection, path: Path) -> None:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(STEPS):
        raise CatalogError(f"{path} was written by a newer lcma (schema {version}, known {len(STEPS)}); upgrade lcma")


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """One transaction that writes: committed at the end of the block, undone where the block fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        with contextlib.suppress(sqlite3.DatabaseError):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Readers and one writer at a time. SQLite does not wait for the lock that the switch needs, so we do."""
    deadline = time.monotonic() + LOCK_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def catalogue_state() -> tuple[object, ...] | None:
    """Return a value that changes when the user's catalogue does; None if there is no catalogue yet."""
    path = data_folder() / "catalog.db"
    try:
        found = path.stat()
    except OSError:
        return None
    state = str(path), found.st_mtime_ns, found.st_size
    with contextlib.suppress(OSError):  # written by another process and not yet moved into the file
        log = path.with_name("catalog.db-wal").stat()
        return (*state, log.st_mtime_ns, log.st_size) if log.st_size else state
    return state
