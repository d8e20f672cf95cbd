"""The schemes that come with the package: one JSON file each, with provenance and certificate."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable

from .formats import lcma_json
from .formats.reading import Reading
from .program import Program


@lru_cache(maxsize=1)
def _files() -> dict[str, Traversable]:
    folder = resources.files("lcma.schemes_db") / "data" / "schemes"
    files = {entry.name.removesuffix(".json"): entry for entry in folder.iterdir() if entry.name.endswith(".json")}
    return dict(sorted(files.items()))


def shipped_names() -> tuple[str, ...]:
    """The names of the shipped schemes, sorted."""
    return tuple(_files())


@lru_cache(maxsize=256)
def shipped(name: str) -> Reading:
    """The shipped scheme of that name, with its certificate.

    Raises:
        KeyError: there is none.
    """
    return lcma_json.parse(shipped_text(name))[0]


def shipped_text(name: str) -> str:
    """The file of a shipped scheme, which is what its scheme and certificate are rendered to.

    Raises:
        KeyError: there is none.
    """
    return _files()[name].read_text(encoding="utf-8")


def kept_program(name: str) -> Program | None:
    """The program with few additions that is kept beside the shipped scheme of that name, or None.

    Found by our own search over straight-line programs; where there is none, `program_of` shares sums.
    """
    entry = resources.files("lcma.schemes_db") / "data" / "programs" / f"{name}.json"
    return Program.from_json(json.loads(entry.read_text(encoding="utf-8"))) if entry.is_file() else None


@lru_cache(maxsize=1)
def shared_additions() -> dict[str, int]:
    """Additions of every shipped scheme by name, those of its kept program or after sharing sums.

    A table, because working them out takes seconds.
    """
    text = (resources.files("lcma.schemes_db") / "data" / "shared_additions.csv").read_text(encoding="utf-8")
    return {name: int(count) for name, _, count in (line.partition(",") for line in text.splitlines()[1:])}


@lru_cache(maxsize=1)
def shipped_stamp() -> str:
    """A hash over all shipped files: changes when the package data change."""
    hasher = hashlib.sha256()
    for name, entry in _files().items():
        hasher.update(name.encode() + b"\0" + entry.read_bytes())
    return hasher.hexdigest()
