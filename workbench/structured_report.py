"""The structured products as one page of Markdown: our schemes beside the best that are known."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources

from ..schemes_db import Target, parse_ring, parse_target
from ..schemes_db.algebra import naive
from ..schemes_db.catalog import Catalog
from ..schemes_db.costs import full_and_half
from ..schemes_db.pareto import CatalogueRow
from ..schemes_db.ranks import SAME, format_of
from .output import markdown_table

HEAD = """# Structured products

Schemes for products of matrices with a structure, block by block on an n x n grid: the best that are known, with their
sources, and ours. This page is written by `lcma report structured`; the known figures come with lcma as
`schemes_db/data/ranks_structured.csv`.

**R** is the rank, **F + H** the full and the half products (half ones recurse), **additions** those of the scheme as
it stands, **shared** those with shared sums computed once. A product of a triangular and a general matrix, in every
place and orientation, and one triangle of A B^T or of A A^T are one tensor: one scheme of ours stands for all. So are
the product of two upper triangular matrices and one triangle of A A^T with A upper triangular. *Scalars only*: the
identities take a block and its mirror image for the same, which is wrong for blocks that are matrices; no executor
takes such a scheme, so the catalogue holds none of ours. [Searching](searching.md#walks-and-moves) says which of their
ranks `lcma search` reaches."""

_KNOWN = ("product", "n", "R", "F + H", "additions", "over", "source")
_COLUMNS = (*_KNOWN, "our R", "F + H", "additions", "shared", "scheme")

SCALAR_LETTERS = frozenset("skw")
"""Symmetric, skew, and skew plus diagonal: letters of formats that hold for scalars only."""


FRONTS = """## Fronts

Of every structured target all schemes of the catalogue over the integers that no other is as good as in **R**, in
**F + H/2**, the products of one level with a half one counted as half, and in the **additions** as they stand. *By
blocks* are the products of the blocks themselves. A target stands for all that rotation, transposition and reversal
make of it. `blocks(...)` has the grids of A, B and C, row by row: F full, L and U triangles, `.` nothing."""

_FRONT_COLUMNS = ("target", "by blocks", "R", "F + H", "F + H/2", "of that by blocks", "additions", "shared", "scheme")


def structured_page() -> str:
    """The page: every published figure with ours beside it, then all that is good in something, target by target."""
    with Catalog.in_memory() as catalog:
        entries = [entry for entry in catalog.entries() if not parse_target(entry.target).is_general]
    parts = [HEAD, markdown_table(_COLUMNS, _rows(entries)), FRONTS, markdown_table(_FRONT_COLUMNS, _fronts(entries))]
    return "\n\n".join(parts) + "\n"


def _rows(entries: Sequence[CatalogueRow]) -> Iterator[tuple[object, ...]]:
    text = (resources.files("lcma.schemes_db") / "data" / "ranks_structured.csv").read_text(encoding="utf-8")
    places = {entry.digest: _place(parse_target(entry.target)) for entry in entries}
    shown: set[tuple[str, int]] = set()
    for known in csv.DictReader(text.splitlines()):
        kind, n, rank, full = known["format"], int(known["n"]), int(known["best_rank"]), int(known["general_products"])
        mine = [entry for entry in entries if places[entry.digest] == (SAME.get(kind, kind), n)]
        ours = _best(mine) if (kind, n) not in shown else None
        shown.add((kind, n))
        what = f"{known['description']}{', *scalars only*' if SCALAR_LETTERS & set(kind) else ''}"
        found = (rank, f"{full} + {rank - full}", known["naive_adds_no_CSE"], known["field"], known["source"])
        yield (what, n, *found, *(_ours(ours) if ours else ("",) * 5))


def _place(target: Target) -> tuple[str | None, int]:
    """The format of the table whose tensor a target has, and its size."""
    format = format_of(target)
    return SAME.get(format, format) if format else None, target.m


def _best(entries: Iterable[CatalogueRow]) -> CatalogueRow | None:
    """The lowest rank, as the figures beside it are of that; then the fewest products, then the fewest additions."""
    return min(entries, key=lambda e: (e.rank, e.products, e.additions, e.digest), default=None)


def _fronts(entries: Sequence[CatalogueRow]) -> Iterator[tuple[object, ...]]:
    """The rows of all targets, those that share their schemes under one name, small grids first."""
    kin: dict[frozenset[Target], list[CatalogueRow]] = {}
    for entry in entries:
        if not parse_ring(entry.ring).characteristic:
            kin.setdefault(frozenset(parse_target(entry.target).orbit()), []).append(entry)
    named = {mine[0].target: mine for mine in kin.values()}
    for name in sorted(named, key=lambda name: (sorted(parse_target(name).shape), name)):
        full, half = full_and_half(naive(parse_target(name)))
        whole = full + half / 2
        for entry in sorted(named[name], key=_merits):
            if not any(_dominates(other, entry) for other in named[name]):
                products, *rest = _ours(entry)[1:]
                cost = (products, f"{entry.products:g}", f"{entry.products / whole:.1%}")
                yield (f"`{name}`", f"{full} + {half}", entry.rank, *cost, *rest)


def _merits(entry: CatalogueRow) -> tuple[float, ...]:
    return entry.rank, entry.products, entry.additions


def _dominates(one: CatalogueRow, other: CatalogueRow) -> bool:
    """Return whether one is as good in everything, and better in something."""
    return _merits(one) != _merits(other) and all(x <= y for x, y in zip(_merits(one), _merits(other), strict=True))


def _ours(entry: CatalogueRow) -> tuple[object, ...]:
    products = f"{entry.full_products} + {entry.half_products}"
    label = entry.name or entry.digest[:12]
    return (entry.rank, products, entry.additions, entry.additions_cse, f"{label}, over {entry.ring}")
