"""The shipped schemes as one page of Markdown: ranks, gaps and origins by format."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

from ..schemes_db import Z2, Ring, Target, Z, parse_ring, parse_target
from ..schemes_db.catalog import Catalog
from ..schemes_db.pareto import CatalogueRow
from ..schemes_db.ranks import best_known
from .board import LARGEST, BoardCell, Summary, board_cells
from .output import markdown_table

KEPT_SIDE = 5
"""Formats up to this side have a row of their own."""

BOARD_SIDES = (5, 8, 10, 12, LARGEST)
"""Formats up to these sides are compared with the table as a whole."""

RINGS = {"Z": "integers", "ZT": "ternary", "Q": "rationals, table of any field", "Z2": "modulo 2, formats up to 8x8x8"}
"""The rings of the comparison with the table, and how they are called there."""

HEAD = """# Catalogue

The schemes that come with lcma, each proven exact. This page is written by `lcma report catalogue`.

**Rank** is over the integers, *ternary* where all coefficients are -1, 0 or 1; **Z2** is the rank modulo 2 where
ours is lower. **Known** is the best rank that anybody has shown, over the integers and, behind the slash, modulo 2
where that is lower; **gap** is ours less that. **Additions** are those of the scheme as it stands, **shared** those
with shared sums computed once. **Origin** is the publication, or the command of our own search; `lcma show DIGEST` has
every step."""

_SMALL = ("format", "rank", "coefficients", "Z2", "known", "gap", "additions", "shared", "origin")
_OTHERS = ("target", "ring", "rank", "full + half", "known", "additions", "shared", "origin")
_BOARD = ("formats up to", "number", "mean gap", "worst", "at or below", "below", "sum of ranks", "of the table")
_COMPOSED = ("format", "rank", "known", "gap", "made of")


def catalogue_page() -> str:
    """The page: formats with schemes of their own, structured targets, and compositions up to 16x16x16 in short."""
    with Catalog.in_memory() as catalog:
        entries = catalog.entries()
        general = [entry for entry in entries if parse_target(entry.target).is_general]
        others = [entry for entry in entries if not parse_target(entry.target).is_general]
        squares = [
            (cell.name, cell.part.rank, cell.known.rank, cell.gap, cell.construction)
            for cell in board_cells(catalog)
            if cell.shape[2] == cell.shape[0] > KEPT_SIDE
        ]
        parts = [
            HEAD,
            "## Formats up to 5x5x5, and larger ones with a scheme of their own",
            markdown_table(_SMALL, (_small_row(catalog, target, general) for target in _formats(general))),
            "## Structured products",
            markdown_table(_OTHERS, (_other_row(catalog, entry) for entry in others)),
            "## Larger formats, composed of the above",
            "`lcma compose` has a scheme for every format up to 16x16x16 and beyond: direct sums, tensor products and "
            "products of blocks, also of products that share a factor, of the schemes above. All formats with sides "
            "of 2 or more against the table of best known ranks of 2 July 2026; gaps below it count as negative:",
            _board(catalog),
            "`lcma report catalogue --json` has every format, [Records](records.md) those below the table. "
            "The square ones:",
            markdown_table(_COMPOSED, squares),
        ]
    return "\n\n".join(parts) + "\n"


def board_json(up_to: int = LARGEST) -> dict[str, object]:
    """All formats up to a side over Z beside the table of best known ranks, and the summaries by ring, as JSON."""
    with Catalog.open() as catalog:
        boards = {ring: board_cells(catalog, ring, up_to) for ring in RINGS}
    return {
        "up_to": up_to,
        "date_of_table": boards["Z"][0].known.date,
        "summary": {ring: Summary.of(cells).to_json() for ring, cells in boards.items()},
        "formats": [cell.to_json() for cell in boards["Z"]],
    }


def _board(catalog: Catalog) -> str:
    """Return all formats against the table of best known ranks, by longest side and by ring."""
    boards = {ring: board_cells(catalog, ring) for ring in RINGS}
    rows = [
        (f"{side}x{side}x{side}", *_summary([cell for cell in boards["Z"] if cell.shape[2] <= side]))
        for side in BOARD_SIDES
    ]
    rows += [(f"16x16x16, {RINGS[ring]}", *_summary(boards[ring])) for ring in ("ZT", "Q", "Z2")]
    return markdown_table(_BOARD, rows)


def _summary(cells: Sequence[BoardCell]) -> tuple[object, ...]:
    all_ = Summary.of(cells)
    worst = f"{all_.worst.name}: {100 * all_.worst.excess:.1f}%"
    mean = f"{100 * all_.mean_gap:.2f}%"
    return (all_.formats, mean, worst, all_.at_or_below, all_.below, all_.rank, all_.table)


def _formats(entries: Sequence[CatalogueRow]) -> list[Target]:
    """All formats up to KEPT_SIDE, then the larger ones that have a scheme over the integers."""
    small = [Target.general(*shape) for shape in combinations_with_replacement(range(2, KEPT_SIDE + 1), 3)]
    mine = {parse_target(entry.target).shape for entry in entries if entry.ring == Z.name}
    return small + [Target.general(*shape) for shape in sorted(mine) if max(shape) > KEPT_SIDE]


def _small_row(catalog: Catalog, target: Target, entries: Sequence[CatalogueRow]) -> tuple[object, ...]:
    whole, binary = (_best(entries, target, ring) for ring in (Z, Z2))
    known, known2 = (_known(target, ring) for ring in (Z, Z2))
    lower = binary is not None and (whole is None or binary.rank < whole.rank)
    mod2 = binary.rank if binary is not None and lower else None
    both = [(whole.rank if whole else None, known)]
    if known2 not in (None, known) or mod2 is not None:
        both.append((mod2 if mod2 is not None else both[0][0], known2))
    gaps = " / ".join("" if ours is None or best is None else str(ours - best) for ours, best in both)
    if whole is None:
        return (target, "", "", mod2, _pair(known, known2), gaps, "", "", binary and _origin(catalog, binary))
    coefficients = "ternary" if whole.ternary else "integer"
    sums = (whole.additions, whole.additions_cse)
    return (target, whole.rank, coefficients, mod2, _pair(known, known2), gaps, *sums, _origin(catalog, whole))


def _best(entries: Sequence[CatalogueRow], target: Target, ring: Ring) -> CatalogueRow | None:
    """The lowest rank, then the fewest additions."""
    mine = [entry for entry in entries if (entry.target, entry.ring) == (target.name, ring.name)]
    return min(mine, key=lambda e: (e.rank, e.additions_cse or e.additions, e.digest), default=None)


def _known(target: Target, ring: Ring) -> int | None:
    known = best_known(target, ring)
    return known.rank if known else None


def _pair(whole: int | None, binary: int | None) -> str:
    return f"{whole or ''}" + (f" / {binary}" if binary is not None and binary != whole else "")


def _other_row(catalog: Catalog, entry: CatalogueRow) -> tuple[object, ...]:
    products = f"{entry.full_products} + {entry.half_products}"
    known = _known(parse_target(entry.target), parse_ring(entry.ring))
    sums = (entry.additions, entry.additions_cse)
    return (entry.target, entry.ring, entry.rank, products, known, *sums, _origin(catalog, entry))


def _origin(catalog: Catalog, entry: CatalogueRow) -> str:
    """The publication or the command of a scheme, and its digest; `lcma show DIGEST` has all steps."""
    origin = catalog.find(entry.digest)[0].provenance
    if origin.kind == "search":
        return f"{f'`{origin.command}`' if origin.command else 'our own search'}, {entry.digest[:12]}"
    remark = f" ({origin.remark})" if origin.remark else ""
    return f"{origin.source or origin.relation}{remark}, {entry.digest[:12]}"
