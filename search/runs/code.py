"""Hash of the code that a run depends on: a run can be resumed only by the code that started it."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SOURCES = ("schemes_db", "search", "verify")


@lru_cache(maxsize=1)
def code_hash() -> str:
    """Return the sha256 (16 hex digits) of names and contents of the Python files and tables that walks depend on."""
    digest = hashlib.sha256()
    for source in SOURCES:
        for file in sorted((ROOT / source).rglob("*")):
            if file.suffix in (".py", ".csv"):
                digest.update(f"{file.relative_to(ROOT).as_posix()}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
