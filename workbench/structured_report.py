"""The structured products as one page of Markdown: our schemes beside the best that are known."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources

from ..kernels.causal.roles import triangle_of
from ..schemes_db import parse_target
from ..schemes_db.catalog import Catalog
from ..schemes_db.keeping import Entry
from .report import markdown_table

HEAD = """# Structured products

Schemes for products of matrices with a structure, block by block on an n x n grid: the best that are known, with their
sources, and ours. This page is written by `lcma report structured`; the known figures come with lcma as
`schemes_db/data/ranks_structured.csv`.

**R** is the rank, **F + H** the full and the half products (half ones recurse), **additions** those of the scheme as
it stands, **shared** those with shared sums computed once. A product of a triangular and a general matrix, in every
place and orientation, and one triangle of A B^T or of A A^T are one tensor: one scheme of ours stands for all. *Scalars
only*: the identities take a block and its mirror image for the same, which is wrong for blocks that are matrices; no
executor takes such a scheme."""

_COLUMNS = (
    "product",
    "n",
    "R",
    "F + H",
    "additions",
    "over",
    "source",
    "our R",
    "F + H",
    "additions",
    "shared",
    "scheme",
)

TRIANGULAR = ("ug", "gt")
"""The formats of the tensor that all triangular products share."""

SCALAR_LETTERS = frozenset("skw")
"""Symmetric, skew, and skew plus diagonal: letters of formats that hold for scalars only."""


def structured_page() -> str:
    """The page: every published figure with ours beside it, then targets of ours that nobody has published."""
    with Catalog.in_memory() as catalog:
        entries = [entry for entry in catalog.entries() if not parse_target(entry.target).is_general]
    triangular = [entry for entry in entries if triangle_of(parse_target(entry.target)) is not None]
    others = [entry for entry in entries if entry not in triangular]
    parts = [HEAD, markdown_table(_COLUMNS, _rows(triangular))]
    if others:
        rows = ((entry.target, *_ours(entry)) for entry in sorted(others, key=lambda entry: (entry.target, entry.rank)))
        parts += ["## Other targets", markdown_table(("target", "R", "F + H", "additions", "shared", "scheme"), rows)]
    return "\n\n".join(parts) + "\n"


def _rows(triangular: Sequence[Entry]) -> Iterator[tuple[object, ...]]:
    text = (resources.files("lcma.schemes_db") / "data" / "ranks_structured.csv").read_text(encoding="utf-8")
    shown: set[tuple[str, int]] = set()
    for known in csv.DictReader(text.splitlines()):
        kind, n, rank, full = known["format"], int(known["n"]), int(known["best_rank"]), int(known["general_products"])
        ours = _best(triangular, n) if kind in TRIANGULAR and (kind, n) not in shown else None
        shown.add((kind, n))
        what = f"{known['description']}{', *scalars only*' if SCALAR_LETTERS & set(kind) else ''}"
        found = (rank, f"{full} + {rank - full}", known["naive_adds_no_CSE"], known["field"], known["source"])
        yield (what, n, *found, *(_ours(ours) if ours else ("",) * 5))


def _best(entries: Iterable[Entry], n: int) -> Entry | None:
    """The fewest products, a half one counted as half, then the fewest additions."""
    mine = [entry for entry in entries if parse_target(entry.target).shape == (n, n, n)]
    return min(mine, key=lambda e: (2 * e.full_products + e.half_products, e.additions, e.digest), default=None)


def _ours(entry: Entry) -> tuple[object, ...]:
    products = f"{entry.full_products} + {entry.half_products}"
    label = entry.name or entry.digest[:12]
    return (entry.rank, products, entry.additions, entry.additions_cse, f"{label}, over {entry.ring}")
