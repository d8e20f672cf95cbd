"""Stored schemes as starts of a search of a larger format."""

from __future__ import annotations

from ...schemes_db import Ring, Scheme, Target
from ...schemes_db.catalog import Catalog
from ...schemes_db.composition import oriented
from ..runs.stages import formats_below


def best_below(catalog: Catalog, target: Target, ring: Ring) -> Scheme | None:
    """Return the lowest stored scheme, over Z (or Z2 if `ring` is), of the largest stored format below a target."""
    rings = ("Z2", "Z") if ring.name == "Z2" else ("Z",)
    for name in reversed(formats_below(target)):
        shape = tuple(int(side) for side in name.split("x"))
        kept = "x".join(map(str, sorted(shape)))
        entries = [entry for entry in catalog.entries(target=kept) if entry.ring in rings]
        if entries:
            best = min(entries, key=lambda entry: (entry.rank, entry.additions, entry.digest))
            return oriented(catalog.find(best.digest)[0], (shape[0], shape[1], shape[2]))
    return None
