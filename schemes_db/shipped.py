"""The schemes that come with the package: one JSON file each, with provenance and certificate."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable

from .formats import lcma_json
from .formats.reading import Reading


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
    return lcma_json.parse(_files()[name].read_text(encoding="utf-8"))[0]


@lru_cache(maxsize=1)
def shared_additions() -> dict[str, int]:
    """Additions after sharing of every shipped scheme, by name: a table, because working them out takes seconds."""
    text = (resources.files("lcma.schemes_db") / "data" / "shared_additions.csv").read_text(encoding="utf-8")
    return {name: int(count) for name, _, count in (line.partition(",") for line in text.splitlines()[1:])}


@lru_cache(maxsize=1)
def shipped_stamp() -> str:
    """A hash over all shipped files: changes when the package data change."""
    hasher = hashlib.sha256()
    for name, entry in _files().items():
        hasher.update(name.encode() + b"\0" + entry.read_bytes())
    return hasher.hexdigest()
