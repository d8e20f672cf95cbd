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
from ..groups.product_rank import by_products
from .result import Find, Result

SPARE = 1 << 20
"""Bytes that must be free where finds are stored."""

KEPT = "kept"
"""What `keep_finds` says of a find that the catalogue lists from now on."""


def keep(result: Result, start: Scheme | None = None) -> list[str]:
    """Store the finds of a search that add something to the catalogue, with what they came from; see `keep_finds`.

    Where there is none, the nearest scheme takes their place. Finds with more groups of products are stored even if
    another scheme is as good on its own.

    Raises:
        CatalogError: the catalogue can't be written.
    """
    said = keep_finds(result.finds, every=by_products(result.objective))
    made = [(step.scheme, step.certificate) for step in result.lineage if KEPT in said]
    if start is not None and start.provenance.kind == "composition" and (KEPT in said or not start.target.is_general):
        made.append((start, certify(start)))
    with Catalog.open() as catalog:
        for scheme, certificate in made:
            catalog.add(scheme, certificate, listed=catalog.as_good(scheme) is None)
    return keep_finds([result.nearest]) if isinstance(result.nearest, Find) else said


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
    written = []
    for found in result.kept:
        path = folder / f"lcma-found-{found.scheme.digest[:12]}.json"
        write_atomic(path, lcma_json.render(found.scheme, found.certificate))
        written.append(path)
    return written


def keep_finds(finds: Iterable[Find], every: bool = False) -> list[str]:
    """Store the finds that add something to the catalogue (`Catalog.as_good`), or every one; say what became of each.

    The schemes over Z2 or Z3 that they were lifted from are stored with them, and found by digest only.

    Raises:
        CatalogError: the catalogue can't be written.
    """
    said = []
    with Catalog.open() as catalog:
        for found in finds:
            scheme, rival = found.scheme, catalog.as_good(found.scheme)
            if rival is not None and (not every or rival.digest == scheme.digest):
                known = rival.name or rival.digest[:12]
                said.append("known already" if rival.digest == scheme.digest else f"not kept: {known} is as good")
                continue
            if found.origin is not scheme:
                catalog.add(found.origin, found.origin_certificate, listed=False)
            said.append(KEPT if catalog.add(scheme, found.certificate) else "known already")
    return said
