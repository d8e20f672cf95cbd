"""Rows of the catalogue: their columns, and the documents in them."""

from __future__ import annotations

import json
from functools import lru_cache

from ..errors import DamagedRowError, SchemeFormatError
from .certificate import Certificate
from .formats import lcma_json
from .names import tidy_name
from .pareto import CatalogueRow, entry_of
from .scheme import Scheme
from .shipped import shared_additions, shipped, shipped_text

ENTRY_COLUMNS = (
    "digest",
    "name",
    "target",
    "ring",
    "rank",
    "full_products",
    "half_products",
    "additions",
    "additions_cse",
    "nonzeros",
    "growth",
    "ternary",
    "origin",
    "added",
)


def scheme_of_row(digest: str, document: str) -> tuple[Scheme, Certificate]:
    """The scheme and the certificate in a row's document.

    Raises:
        DamagedRowError: the document can't be read, or its data have another digest.
    """
    try:
        reading = lcma_json.parse(_tidied(document))[0]
    except SchemeFormatError as error:
        raise _damaged(digest, str(error)) from None
    if reading.scheme.digest != digest:
        raise _damaged(digest, f"its data have the digest {reading.scheme.digest[:12]}")
    if reading.certificate is None:
        raise _damaged(digest, "its certificate is of another scheme")
    return reading.scheme, reading.certificate


def _damaged(digest: str, fault: str) -> DamagedRowError:
    start = digest[:12]
    return DamagedRowError(f"the catalogue's row {start} is damaged: {fault}; take it out with: lcma remove {start}")


def _tidied(document: str) -> str:
    """A row's document, its name changed where it is one that no scheme may have: other programs write rows, too."""
    try:
        data = json.loads(document)
        if not isinstance(data, dict) or not isinstance(data.get("name", ""), str):
            return document
    except (ValueError, RecursionError):
        return document
    name = data.get("name", "")
    return document if not name or tidy_name(name) == name else json.dumps({**data, "name": tidy_name(name)})


def entry_of_row(row: tuple[object, ...]) -> CatalogueRow:
    """The entry of a row of ENTRY_COLUMNS."""
    values = dict(zip(ENTRY_COLUMNS, row, strict=True))
    return CatalogueRow(**{**values, "ternary": bool(values["ternary"])})  # type: ignore[arg-type]  # STRICT tables


@lru_cache(maxsize=256)
def shipped_row(name: str) -> tuple[CatalogueRow, Scheme, str] | None:
    """Return a shipped scheme, its row and its document, computed once a process; None if it has no certificate."""
    scheme, certificate = shipped(name).scheme, shipped(name).certificate
    if certificate is None:
        return None
    row = entry_of(scheme, "shipped", shared_additions().get(name))
    return row, scheme, shipped_text(name)
