"""The catalogue's rows as the site lists them: page, best known rank, whether the best of its kind."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ...errors import DamagedRowError, LcmaError
from ...schemes_db import Target, parse_ring, parse_target
from ...schemes_db.catalog import Catalog
from ...schemes_db.pareto import CatalogueRow
from ...schemes_db.ranks import KnownRank, best_known
from ...schemes_db.resolve import resolve
from ..schemes import stored_scheme

MAX_NAME = 40
"""Characters of a name that a page offers to be typed."""


@dataclass(frozen=True)
class Listed:
    """A row of the catalogue with what the site says of it. `page` is relative to the site's root."""

    entry: CatalogueRow
    target: Target
    known: KnownRank | None
    best: bool

    @property
    def cost(self) -> float:
        """F + H/2; the rank where no product is half."""
        return self.entry.full_products + self.entry.half_products / 2

    @property
    def known_cost(self) -> float | None:
        """F + H/2 of the best known scheme."""
        if self.known is None or self.known.full is None or self.known.half is None:
            return self.known.rank if self.known else None
        return self.known.full + self.known.half / 2

    @property
    def gap(self) -> float | None:
        """The cost above the best known one; negative where ours is lower."""
        return None if self.known_cost is None else self.cost - self.known_cost

    @property
    def level(self) -> str:
        """The heat of the gap."""
        return level(self.cost, self.known_cost)

    @property
    def label(self) -> str:
        """The target's name, without the blocks of a mask, which may be thousands."""
        return _label(self.entry.target)

    @property
    def ternary(self) -> bool:
        """True if the coefficients are -1, 0 and 1, where that says something."""
        return self.entry.ternary and not parse_ring(self.entry.ring).characteristic

    @property
    def stem(self) -> str:
        """The name of its files, such as 2x2x2-r7-0123456789abcdef."""
        sizes = "x".join(map(str, self.target.shape))
        suffix = self.entry.target.partition(":")[2]
        plain = suffix.replace("-", "").replace(":", "").isalpha()
        form = f"-{suffix.replace(':', '-')}" if plain else "-blocks" if suffix else ""
        return f"{sizes}{form}-r{self.entry.rank}-{self.entry.digest[:16]}"

    @property
    def page(self) -> str:
        return f"schemes/{self.stem}.html"


def level(cost: float, known: float | None) -> str:
    """The heat of a gap: `record`, g0 (equal) to g4 (more than 10% above), `none` without a figure."""
    if known is None:
        return "none"
    if cost < known:
        return "record"
    excess = (cost - known) / known
    return next((f"g{step}" for step, bound in enumerate((0, 0.02, 0.05, 0.10)) if excess <= bound), "g4")


def damaged_rows(catalog: Catalog) -> dict[str, str]:
    """The fault of every row whose data are not a valid scheme with its digest, by digest."""
    faults = {}
    for entry in catalog.entries():
        try:
            stored_scheme(catalog, entry.digest)
        except DamagedRowError as error:
            faults[entry.digest] = str(error)
    return faults


def listing(catalog: Catalog, without: Collection[str] = ()) -> list[Listed]:
    """All schemes but some, in the catalogue's order; `best` marks one for each target and ring."""
    entries = [entry for entry in catalog.entries() if entry.digest not in without]
    targets = {name: parse_target(name) for name in {entry.target for entry in entries}}
    best: dict[tuple[object, str], tuple[float, int, int, str]] = {}
    for entry in entries:
        key, merit = (_kind(targets[entry.target]), entry.ring), _merit(entry)
        best[key] = min(best.get(key, merit), merit)
    return [
        Listed(
            entry,
            target := targets[entry.target],
            best_known(target, parse_ring(entry.ring)),
            best[_kind(target), entry.ring] == _merit(entry),
        )
        for entry in entries
    ]


def shortest_name(row: Listed, catalog: Catalog) -> str:
    """The shortest name by which commands find the scheme: that of its target, its own, or the start of its digest."""
    entry = row.entry
    for name in sorted(filter(None, (entry.target, f"{entry.target}:{entry.rank}", entry.name)), key=len):
        if re.fullmatch(r"[\w.:-]+", name) and len(name) <= MAX_NAME:
            with suppress(LcmaError):
                if resolve(name, catalog)[0].digest == entry.digest:
                    return name
    return entry.digest[:12]


def _kind(target: Target) -> object:
    """The key under which schemes are compared: ranks of general targets do not depend on the order of m, k, n."""
    return tuple(sorted(target.shape)) if target.is_general else target.name


def _label(target: str) -> str:
    return target if len(target) <= 32 else f"{target.partition('(')[0]}(…)"


def _merit(entry: CatalogueRow) -> tuple[float, int, int, str]:
    return entry.full_products + entry.half_products / 2, entry.rank, entry.additions, entry.digest


def family(catalog: Catalog, listed: Sequence[Listed]) -> tuple[dict[str, list[tuple[str, str]]], ...]:
    """Parents and children by digest, each a list of (digest, relation)."""
    parents = {row.entry.digest: catalog.parents(row.entry.digest) for row in listed}
    children: dict[str, list[tuple[str, str]]] = {}
    for row in listed:
        for parent, relation in parents[row.entry.digest]:
            children.setdefault(parent, []).append((row.entry.digest, relation))
    return parents, children


def data_script(listed: Sequence[Listed]) -> str:
    """The list as a script: a page opened from a folder may not fetch a JSON file."""
    rows = [_values(row) for row in listed]
    fields = list(rows[0]) if rows else []
    body = ",\n".join(_json(list(values.values())) for values in rows)
    return f"window.LCMA_SCHEMES = {{fields: {_json(fields)}, rows: [\n{body}\n]}};\n"


def _values(row: Listed) -> dict[str, object]:
    e = row.entry
    return {
        "page": row.page,
        "name": e.name,
        "target": row.label,
        "ring": e.ring,
        "rank": e.rank,
        "known": row.known_cost,
        "full": e.full_products,
        "half": e.half_products,
        "additions": e.additions,
        "shared": e.additions_cse,
        "nonzeros": e.nonzeros,
        "growth": round(e.growth, 3),
        "ternary": row.ternary,
        "best": row.best,
        "origin": e.origin,
        "digest": e.digest[:16],
    }


def _json(values: Sequence[object]) -> str:
    """JSON that is harmless inside HTML as well."""
    return json.dumps(values, separators=(",", ":")).replace("<", "\\u003c")
