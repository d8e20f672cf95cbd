"""POOL arguments: schemes by name or from files, and all the finds of run folders."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..schemes_db import Scheme
from ..search import status
from .schemes import scheme_argument


def pool_argument(texts: Iterable[str], *, origins: bool = False) -> list[Scheme]:
    """The certified schemes that names, files and run folders mean, each once, in that order.

    With `origins` the schemes over Z2 that the finds of a folder were lifted from are taken, and
    those that did not lift.

    Raises:
        LcmaError: one of them means nothing, or is not valid.
    """
    schemes: dict[str, Scheme] = {}
    for text in texts:
        for scheme in _schemes(text, origins):
            schemes.setdefault(scheme.digest, scheme)
    return list(schemes.values())


def _schemes(text: str, origins: bool) -> list[Scheme]:
    if (Path(text) / "run.json").is_file():
        standing = status(text)
        if not origins:
            return [found.scheme for found in standing.finds]
        return [*(found.origin for found in standing.finds), *(lost.origin for lost in standing.unlifted)]
    return [scheme_argument(text)[0]]
