"""Kept schemes to start a search of a larger format from."""

from __future__ import annotations

from ...schemes_db import Ring, Scheme, Target
from ...schemes_db.catalog import Catalog
from ...schemes_db.composition import oriented
from ..runs.stages import formats_below


def best_below(catalog: Catalog, target: Target, ring: Ring) -> Scheme | None:
    """The kept scheme of the lowest rank for the largest format on the way to a target; over Z2 any ring's will do."""
    rings = ("Z2", "Z") if ring.name == "Z2" else ("Z",)
    for name in reversed(formats_below(target)):
        shape = tuple(int(side) for side in name.split("x"))
        kept = "x".join(map(str, sorted(shape)))
        entries = [entry for entry in catalog.entries(target=kept) if entry.ring in rings]
        if entries:
            best = min(entries, key=lambda entry: (entry.rank, entry.additions, entry.digest))
            return oriented(catalog.find(best.digest)[0], (shape[0], shape[1], shape[2]))
    return None
