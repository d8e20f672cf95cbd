"""The rows of a suite on disk: JSON lines that add up over runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ...errors import SchemeFormatError

Row = dict[str, Any]


class Journal:
    """One JSONL file. Appending is one write, synced; a last line that a crash cut short is dropped."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self) -> list[Row]:
        """All rows, oldest first.

        Raises:
            SchemeFormatError: a line before the last is not a row.
        """
        try:
            lines = self.path.read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return []
        rows: list[Row] = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                rows.append({"suite": row["suite"], "key": row["key"], "code": row["code"], **row})
            except (ValueError, TypeError, KeyError, RecursionError):
                if number == len(lines):
                    break
                raise SchemeFormatError(
                    "not a row of a benchmark; mend or delete the line", self.path, number
                ) from None
        return rows

    def newest(self) -> dict[str, Row]:
        """The newest row of every key, in the order in which keys were first measured."""
        return {row["key"]: row for row in self.rows()}

    def append(self, row: Row) -> None:
        """Add a row.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as stream:
            stream.seek(0)
            stream.truncate(stream.read().rfind(b"\n") + 1)  # without a last line that a crash cut short
            stream.write(json.dumps(row).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

    def done(self, code: str, machine: dict[str, Any]) -> dict[str, Row]:
        """The newest row of each key that this code made on this machine."""
        return {row["key"]: row for row in self.rows() if row["code"] == code and row.get("machine") == machine}
