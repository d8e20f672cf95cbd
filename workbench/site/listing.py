"""The catalogue's rows as the site lists them: page, best known rank, whether the best of its kind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress

from ...errors import DamagedRowError, LcmaError
from ...schemes_db import Target
from ...schemes_db.catalog import Catalog
from ...schemes_db.names import is_free_of_meaning
from ...schemes_db.resolve import ORDERS, entry_of
from ...schemes_db.shipped import shipped_names
from ..output import readers
from ..scheme_record import SchemeRecord

MAX_NAME = 40
"""Characters of a name that a page offers to be typed."""


def listing(catalog: Catalog, on_damage: Callable[[str], None] | None = None) -> list[SchemeRecord]:
    """All schemes, in the catalogue's order; `best` marks one for each target and ring.

    With `on_damage` every scheme is proven, and a row whose data are not a valid scheme with its digest is left out:
    `on_damage` is called with the fault.
    """
    records = []
    for record in (SchemeRecord(entry, catalog) for entry in catalog.entries()):
        if on_damage:
            try:
                record.prove()
            except DamagedRowError as error:
                on_damage(str(error))
                continue
        records.append(record)
    best: dict[tuple[object, str], SchemeRecord] = {}
    for record in records:
        key = (_kind(record.target), record.entry.ring)
        best[key] = min(best.get(key, record), record, key=merit)
    for record in best.values():
        record.best = True
    return records


def shortest_name(row: SchemeRecord) -> str:
    """The shortest name by which commands find the scheme: that of its target, its own, or the start of its digest."""
    entry = row.entry
    for name in sorted(filter(None, (entry.target, f"{entry.target}:{entry.rank}", entry.name)), key=len):
        if re.fullmatch(r"[\w.:-]+", name) and len(name) <= MAX_NAME and _is_meant(row, name):
            return name
    return entry.digest[:12]


def _is_meant(row: SchemeRecord, name: str) -> bool:
    """Return whether `resolve` finds the scheme by its own name, or by its target with or without a rank."""
    if re.fullmatch(r"\d+x\d+x\d+(:.+)?", name):
        with suppress(LcmaError):
            found, order = entry_of(name, row.catalog)
            return order == ORDERS[0] and found.digest == row.entry.digest
    own = name == row.entry.name and is_free_of_meaning(name)
    return own and (row.entry.origin == "shipped" or name not in shipped_names())


def _kind(target: Target) -> object:
    """The key under which schemes are compared: ranks of general targets do not depend on the order of m, k, n."""
    return tuple(sorted(target.shape)) if target.is_general else target.name


def merit(row: SchemeRecord) -> tuple[float, int, int, str]:
    """The key by which the best of several schemes of a target is the least."""
    return row.cost, row.entry.rank, row.entry.additions, row.entry.digest


def family(catalog: Catalog, listed: Sequence[SchemeRecord]) -> tuple[dict[str, list[tuple[str, str]]], ...]:
    """Parents and children by digest, each a list of (digest, relation)."""
    parents = {row.entry.digest: catalog.parents(row.entry.digest) for row in listed}
    children: dict[str, list[tuple[str, str]]] = {}
    for row in listed:
        for parent, relation in parents[row.entry.digest]:
            children.setdefault(parent, []).append((row.entry.digest, relation))
    return parents, children


def data_script(listed: Sequence[SchemeRecord]) -> str:
    """The list as a script: a page opened from a folder may not fetch a JSON file."""
    columns = readers("site")
    rows = ({name: read(row) for name, read in columns.items()} for row in listed)
    short = ({**row, "growth": round(row["growth"], 3), "digest": row["digest"][:16]} for row in rows)
    body = ",\n".join(_json(list(row.values())) for row in short)
    return f"window.LCMA_SCHEMES = {{fields: {_json(list(columns) if listed else [])}, rows: [\n{body}\n]}};\n"


def _json(values: Sequence[object]) -> str:
    """JSON that is harmless inside HTML as well."""
    return json.dumps(values, separators=(",", ":")).replace("<", "\\u003c")
