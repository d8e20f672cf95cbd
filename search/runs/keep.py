"""Storage of the finds of a run in the catalogue."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from ...errors import CatalogError
from ...home import data_folder, write_atomic
from ...schemes_db import Scheme
from ...schemes_db.catalog import Catalog
from ...schemes_db.formats import lcma_json
from ...verify import certify
from .result import Find, Result

SPARE = 1 << 20
"""Bytes that must be free where finds are stored."""


def keep(result: Result, start: Scheme | None = None) -> list[bool]:
    """Store the finds of a search with the steps and the start that they came from; return for each whether it is new.

    Raises:
        CatalogError: the catalogue can't be written.
    """
    composed = start is not None and start.provenance.kind == "composition"
    if start is not None and composed and (result.finds or not start.target.is_general):
        with Catalog.open() as catalog:
            catalog.add(start, certify(start))
    keep_finds(result.lineage)
    if isinstance(result.nearest, Find):
        keep_finds([result.nearest])
    return keep_finds(result.finds)


def refuse_unwritable() -> None:
    """Raise an error before a search if its finds could not be stored.

    Raises:
        CatalogError: the catalogue is damaged, or its folder can't be written or is full.
    """
    with Catalog.open() as catalog:
        catalog.refuse_copy()
    folder = data_folder()
    try:
        with tempfile.TemporaryFile(dir=folder) as stream:
            stream.write(bytes(SPARE))
            stream.flush()
    except OSError as error:
        raise CatalogError(f"{folder} can't be written: {error.strerror}; what is found there would be lost") from None


def write_beside(result: Result, folder: Path) -> list[Path]:
    """Write finds that the catalogue cannot store to files in a folder, one a scheme; return their paths.

    Raises:
        OSError: the folder can't be written.
    """
    near = (result.nearest,) if isinstance(result.nearest, Find) else ()
    written = []
    for found in (*result.finds, *near):
        path = folder / f"lcma-found-{found.scheme.digest[:12]}.json"
        write_atomic(path, lcma_json.render(found.scheme, found.certificate))
        written.append(path)
    return written


def keep_finds(finds: Iterable[Find]) -> list[bool]:
    """Store finds and the schemes over Z2 or Z3 that they were lifted from; return for each whether it is new.

    Raises:
        CatalogError: the catalogue can't be written.
    """
    fresh = []
    with Catalog.open() as catalog:
        for found in finds:
            if found.origin is not found.scheme:
                catalog.add(found.origin, found.origin_certificate)
            fresh.append(catalog.add(found.scheme, found.certificate))
    return fresh
