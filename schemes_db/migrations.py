"""The catalogue's schema, step by step; `PRAGMA user_version` counts the steps that a file has had."""

from __future__ import annotations

import sqlite3

STEPS: tuple[str, ...] = (
    """
    CREATE TABLE schemes (
        digest        TEXT PRIMARY KEY,
        name          TEXT NOT NULL,
        target        TEXT NOT NULL,
        m             INTEGER NOT NULL,
        k             INTEGER NOT NULL,
        n             INTEGER NOT NULL,
        ring          TEXT NOT NULL,
        rank          INTEGER NOT NULL,
        full_products INTEGER NOT NULL,
        half_products INTEGER NOT NULL,
        additions     INTEGER NOT NULL,
        additions_cse INTEGER,
        nonzeros      INTEGER NOT NULL,
        growth        REAL NOT NULL,
        ternary       INTEGER NOT NULL,
        origin        TEXT NOT NULL CHECK (origin IN ('shipped', 'user')),
        document      TEXT NOT NULL,
        added         TEXT NOT NULL
    ) STRICT;
    CREATE INDEX schemes_by_target ON schemes (target, ring, rank);
    CREATE INDEX schemes_by_name ON schemes (name);
    CREATE TABLE lineage (
        child    TEXT NOT NULL,
        parent   TEXT NOT NULL,
        relation TEXT NOT NULL,
        PRIMARY KEY (child, parent, relation)
    ) STRICT;
    CREATE TABLE measurements (
        id      INTEGER PRIMARY KEY,
        digest  TEXT NOT NULL,
        what    TEXT NOT NULL,
        value   REAL NOT NULL,
        unit    TEXT NOT NULL,
        machine TEXT NOT NULL,
        detail  TEXT NOT NULL,
        taken   TEXT NOT NULL
    ) STRICT;
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    """,
    """
    CREATE INDEX lineage_by_parent ON lineage (parent);
    CREATE INDEX measurements_by_digest ON measurements (digest);
    CREATE TABLE runs (
        id       INTEGER PRIMARY KEY,
        command  TEXT NOT NULL,
        target   TEXT NOT NULL,
        ring     TEXT NOT NULL,
        seed     INTEGER,
        rounds   INTEGER NOT NULL,
        flips    INTEGER NOT NULL,
        seconds  REAL NOT NULL,
        finds    INTEGER NOT NULL,
        version  TEXT NOT NULL,
        started  TEXT NOT NULL
    ) STRICT;
    """,
    """
    ALTER TABLE schemes ADD COLUMN invariants TEXT;
    """,
    """
    ALTER TABLE schemes ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE aliases (
        name   TEXT PRIMARY KEY,
        digest TEXT NOT NULL REFERENCES schemes (digest) DEFERRABLE INITIALLY DEFERRED
    ) STRICT;
    CREATE INDEX aliases_by_digest ON aliases (digest);
    """,
)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a catalogue to the newest schema; each step in a transaction of its own with its count."""
    while (version := _version(connection)) < len(STEPS):
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have taken this step while we waited for the lock.
            if _version(connection) == version:
                for statement in STEPS[version].split(";"):
                    if statement.strip():
                        connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
