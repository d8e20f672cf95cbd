"""The scheme pool of a catalogue on disk, so that a new process need not read every scheme for its first plan."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from ...home import cache_folder, write_atomic
from ...schemes_db.catalog_file import catalogue_state
from ...version import __version__

FORMAT = 2
"""Version of the table's format."""

SchemeRow = tuple[str, str, str, str]


@dataclass(frozen=True)
class PoolTable:
    """Labels with their oriented schemes (source, order, digest, key); the costs, a row a field; dominated schemes."""

    entries: tuple[tuple[str, tuple[SchemeRow, ...]], ...]
    costs: list[list[float]]
    dominated: int


def catalogue_stamp() -> str | None:
    """Return an identifier of the state of the user's catalogue; None if there is no catalogue yet."""
    if (state := catalogue_state()) is None:
        return None
    parts = [FORMAT, __version__, *state, _shipped()]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


@lru_cache(maxsize=1)
def _shipped() -> str:
    """Return a hash of names, sizes and times of the shipped schemes, which change with the package's version."""
    folder = files("lcma.schemes_db") / "data" / "schemes"
    if not isinstance(folder, Path):
        return ""  # inside an archive, which only a new version changes
    with os.scandir(folder) as entries:
        found = sorted((entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in entries)
    return hashlib.sha256(repr(found).encode()).hexdigest()


def read_table(stamp: str) -> PoolTable | None:
    """Return the stored table of a state of the catalogue; None if there is none, or it is damaged."""
    try:
        fields = json.loads(_path(stamp).read_text(encoding="utf-8"))
        entries = tuple(
            (str(label), tuple(_row(*row) for row in factors)) for label, factors in fields["entries"] if factors
        )
        costs, dominated = fields["costs"], int(fields["dominated"])
        if len(costs) == 12 and all(len(line) == len(entries) > 0 for line in costs):
            return PoolTable(entries, costs, dominated)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        pass
    return None


def _row(source: str, order: str, digest: str, key: str) -> SchemeRow:
    return str(source), str(order), str(digest), str(key)


def write_table(stamp: str, table: PoolTable) -> None:
    """Store a table, and delete those of earlier states; do nothing if the folder cannot be written."""
    path = _path(stamp)
    with contextlib.suppress(OSError):
        write_atomic(path, json.dumps(asdict(table), separators=(",", ":")))
        for other in path.parent.glob("*.json"):
            if other != path:
                other.unlink()


def _path(stamp: str) -> Path:
    return cache_folder() / "scheme_pools" / f"{stamp}.json"
