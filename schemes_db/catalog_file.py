"""The SQLite file of the catalogue: opened for several processes, its schema brought up to date."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from ..errors import CatalogError
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
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > len(STEPS):
            raise CatalogError(
                f"{path} was written by a newer lcma (schema {version}, known {len(STEPS)}); upgrade lcma"
            )
        _use_write_ahead_log(connection)
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


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
