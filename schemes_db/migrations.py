"""The catalogue's schema, step by step; `PRAGMA user_version` counts the steps that a file has had."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any


def _note_steps(connection: sqlite3.Connection) -> None:
    """Write into the user's rows the step that the text of their provenance states.

    A row that is no JSON, or whose provenance does not state it, stays as it is.
    """
    rows = connection.execute("SELECT digest, document FROM schemes WHERE origin = 'user'").fetchall()
    for digest, document in rows:
        try:
            data = json.loads(document)
            origin = data["provenance"]
            step = None if "steps" in origin else _step_of(origin)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
        if step is None:
            continue
        before, after = json.dumps(origin), json.dumps({**origin, "steps": [step]})
        if document.count(before) != 1:  # another program wrote it
            document = json.dumps(data)
        values = (document.replace(before, after), digest)
        connection.execute("UPDATE schemes SET document = ? WHERE digest = ?", values)


def _step_of(origin: dict[str, Any]) -> dict[str, Any] | None:
    """The step that kind, relation and parents of a provenance state, or None if they do not."""
    kind, relation, parents = origin.get("kind"), origin.get("relation", ""), origin.get("parents", [])
    plain = {"rotation": "rotate", "transposition": "transpose", "reversal": "reverse", "tensor product": "tensor"}
    if kind == "composition" and relation in plain:
        return {"do": plain[relation], "of": parents}
    if kind == "composition" and relation[:-1] == "direct sum along ":
        return {"do": "sum", "of": parents, "values": {"axis": relation[-1]}}
    if kind == "search" and origin.get("command"):
        return {"do": "search", "of": parents, "values": {"command": origin["command"]}}
    if kind == "import":
        values = {"file": origin.get("source", ""), "sha256": origin.get("file_sha256", "")}
        return {"do": "read", "values": values}
    return None


STEPS: tuple[str | Callable[[sqlite3.Connection], None], ...] = (
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
    _note_steps,
    """
    ALTER TABLE runs ADD COLUMN device TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN route TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN policy TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN start INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN reached INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX runs_by_target ON runs (target, ring);
    """,
)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a catalogue to the newest schema; each step in a transaction of its own with its count."""
    while (version := _version(connection)) < len(STEPS):
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have migrated while we waited for the lock.
            if _version(connection) == version:
                step = STEPS[version]
                if callable(step):
                    step(connection)
                else:
                    for statement in filter(str.strip, step.split(";")):
                        connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
