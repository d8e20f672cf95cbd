"""A hash of the code that a row timed: a row counts only as long as that code is the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The package's root folder."""


KINDS = (".py", ".csv", ".json", ".c", ".cpp", ".h")
"""Suffixes of code files: sources, and the tables and data that they read."""


def code_hash(sources: Sequence[str]) -> str:
    """The sha256 (16 hex digits) over names and contents of all sources and tables in these files and folders."""
    digest = hashlib.sha256()
    for source in sorted(sources):
        place = ROOT / source
        files = sorted(file for file in place.rglob("*") if file.suffix in KINDS) if place.is_dir() else [place]
        for file in files:
            digest.update(f"{file.relative_to(ROOT).as_posix()}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
