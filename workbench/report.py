"""The shipped schemes as pages of Markdown: ranks, gaps and origins by format, structured products, and records."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from itertools import combinations_with_replacement

from ..schemes_db import Z2, Q, Ring, Target, Z, parse_ring, parse_target
from ..schemes_db.additions_table import fewest_additions, program_named, recipes
from ..schemes_db.algebra import naive
from ..schemes_db.catalog import Catalog
from ..schemes_db.costs import full_and_half
from ..schemes_db.pareto import CatalogueRow
from ..schemes_db.ranks import SAME, best_known, format_of
from ..verify.program import check_program
from ..verify.report import proof_text
from .board import LARGEST, BoardCell, board_cells, summary
from .output import page, titled
from .scheme_record import SchemeRecord
from .site.fronts import records
from .site.listing import listing

KEPT_SIDE = 5
"""Formats up to this side have a row of their own."""

BOARD_SIDES = (5, 8, 10, 12, LARGEST)
"""Formats up to these sides are compared with the table as a whole."""

RINGS = {"Z": "integers", "ZT": "ternary", "Q": "rationals, table of any field", "Z2": "modulo 2, formats up to 8x8x8"}
"""The rings of the comparison with the table, and how they are called there."""

SCALAR_LETTERS = frozenset("skw")
"""Symmetric, skew, and skew plus diagonal: letters of formats that hold for scalars only."""


def catalogue_page() -> str:
    """The page: formats with schemes of their own, structured targets, and compositions up to 16x16x16 in short."""
    with Catalog.in_memory() as catalog:
        entries = catalog.entries()
        general = [entry for entry in entries if parse_target(entry.target).is_general]
        others = [entry for entry in entries if not parse_target(entry.target).is_general]
        boards = {ring: board_cells(catalog, ring) for ring in RINGS}
        squares = [
            (cell.name, cell.part.rank, cell.known.rank, cell.gap, cell.construction)
            for cell in boards["Z"]
            if cell.shape[2] == cell.shape[0] > KEPT_SIDE
        ]
        return page(
            "catalogue",
            small=titled("small formats", (_small_row(catalog, target, general) for target in _formats(general))),
            others=titled("structured targets", (_other_row(catalog, entry) for entry in others)),
            board=_board(boards),
            composed=titled("squares", squares),
        )


def board_json(up_to: int = LARGEST) -> dict[str, object]:
    """All formats up to a side over Z beside the table of best known ranks, and the summaries by ring, as JSON."""
    with Catalog.open() as catalog:
        boards = {ring: board_cells(catalog, ring, up_to) for ring in RINGS}
    return {
        "up_to": up_to,
        "date_of_table": boards["Z"][0].known.date,
        "summary": {ring: summary(cells) for ring, cells in boards.items()},
        "formats": [cell.to_json() for cell in boards["Z"]],
    }


def _board(boards: Mapping[str, Sequence[BoardCell]]) -> str:
    """Return all formats against the table of best known ranks, by longest side and by ring."""
    rows = [
        (f"{side}x{side}x{side}", *_summary([cell for cell in boards["Z"] if cell.shape[2] <= side]))
        for side in BOARD_SIDES
    ]
    rows += [(f"16x16x16, {RINGS[ring]}", *_summary(boards[ring])) for ring in ("ZT", "Q", "Z2")]
    return titled("formats beside the table", rows)


def _summary(cells: Sequence[BoardCell]) -> tuple[object, ...]:
    formats, mean, gap, worst, *rest = summary(cells).values()
    return (formats, f"{100 * mean:.2f}%", f"{worst}: {100 * gap:.1f}%", *rest)


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


def structured_page() -> str:
    """The page: every published figure with ours beside it, then all that is good in something, target by target."""
    with Catalog.in_memory() as catalog:
        entries = [entry for entry in catalog.entries() if not parse_target(entry.target).is_general]
    published, fronts = titled("published", _published_rows(entries)), titled("fronts", _fronts(entries))
    return page("structured", published=published, fronts=fronts)


def _published_rows(entries: Sequence[CatalogueRow]) -> Iterator[tuple[object, ...]]:
    text = (resources.files("lcma.schemes_db") / "data" / "ranks_structured.csv").read_text(encoding="utf-8")
    places = {entry.digest: _place(parse_target(entry.target)) for entry in entries}
    shown: set[tuple[str, int]] = set()
    for known in csv.DictReader(text.splitlines()):
        kind, n, rank, full = known["format"], int(known["n"]), int(known["best_rank"]), int(known["general_products"])
        mine = [entry for entry in entries if places[entry.digest] == (SAME.get(kind, kind), n)]
        # The lowest rank, as the figures beside it are of that.
        ours = min(mine, key=lambda e: (*_merits(e), e.digest), default=None) if (kind, n) not in shown else None
        shown.add((kind, n))
        what = f"{known['description']}{', *scalars only*' if SCALAR_LETTERS & set(kind) else ''}"
        found = (rank, f"{full} + {rank - full}", known["naive_adds_no_CSE"], known["field"], known["source"])
        yield (what, n, *found, *(_ours(ours) if ours else ("",) * 5))


def _place(target: Target) -> tuple[str | None, int]:
    """The format of the table whose tensor a target has, and its size."""
    format = format_of(target)
    return SAME.get(format, format) if format else None, target.m


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
    return entry.merits[:3]  # without the growth factor


def _dominates(one: CatalogueRow, other: CatalogueRow) -> bool:
    """Return whether one is as good in everything, and better in something."""
    return _merits(one) != _merits(other) and all(x <= y for x, y in zip(_merits(one), _merits(other), strict=True))


def _ours(entry: CatalogueRow) -> tuple[object, ...]:
    products = f"{entry.full_products} + {entry.half_products}"
    label = entry.name or entry.digest[:12]
    return (entry.rank, products, entry.additions, entry.additions_cse, f"{label}, over {entry.ring}")


def records_page() -> str:
    """Full products below the table, structured ones, then those of the best known rank with fewer additions."""
    with Catalog.in_memory() as catalog:
        rows = listing(catalog)
        by_digest = {row.entry.digest[:16]: row for row in rows}
        by_name = {row.entry.name: row for row in rows}
        cells = board_cells(catalog)
        below = [cell for cell in cells if cell.gap < 0]
        general = [_general(cell, by_digest) for cell in below]
        structured = [_structured(row) for row in records(rows) if not row.target.is_general]
        sums = [
            (one.target.name, one.rank, one.additions, one.known.shared, *_sums(one.name, by_name))
            for one in fewest_additions()
            if one.known is not None and one.additions < one.known.shared
        ]
    return page(
        "records",
        below=len(below),
        formats=len(cells),
        apart=sum(cell.shape[0] > 2 for cell in below),
        any_field=sum(cell.below_any for cell in below),
        general=titled("general records", general),
        structured=titled("structured records", structured) if structured else "None in this version.",
        additions=titled("records of additions", sums),
    )


def _general(cell: BoardCell, rows: dict[str, SchemeRecord]) -> tuple[object, ...]:
    """A full product below the table: a scheme of its own, with its file, or the command that composes it."""
    lowest = best_known(parse_target(cell.name), Q)
    own = rows.get(cell.part.name) if cell.part.how == "scheme" else None
    if own is None:
        file, ring, how = "", cell.ring, f"`lcma compose {cell.name} --out {cell.name}.json`"
    else:
        file, ring = _link(own), "ternary" if own.ternary else cell.ring
        how = "; ".join(f"`{step.value('command') or step}`" for step in own.scheme.provenance.history)
    facts = (cell.part.rank, cell.known.rank, lowest and lowest.rank, cell.known.date)
    return (cell.name, *facts, ring, cell.construction, file, how)


def _structured(row: SchemeRecord) -> tuple[object, ...]:
    entry, known = row.entry, row.known
    if known is None:
        raise LookupError(entry.name)
    ours = f"{entry.rank} = {entry.full_products} + {entry.half_products} [{row.cost:g}]"
    full, half = (known.rank, 0) if known.full is None or known.half is None else (known.full, known.half)
    table = f"{known.rank} = {full} + {half} [{row.known_cost:g}]"
    return (row.label, entry.ring, ours, table, known.source, *_proven(row))


def _sums(name: str, rows: dict[str, SchemeRecord]) -> tuple[object, ...]:
    """Return the description of a program: that of its scheme, or the recipe that composes it."""
    if name in recipes():
        program = program_named(name)
        outcome = check_program(program)
        if not outcome.ok:
            raise LookupError(f"{name}: {outcome.explain()}")
        proof = f"exact, {program.target.equations} equations, when this page was built"
        return (name, proof, f"`lcma additions --all`: {recipes()[name]}", "computed")
    return _proven(rows[name])


def _proven(row: SchemeRecord) -> tuple[object, ...]:
    """Scheme with a link to its page and files, proof, command and date."""
    origin = row.scheme.provenance
    proofs = "; ".join(map(proof_text, row.certificate.proofs))
    how = "; ".join(f"`{step}`" for step in origin.history) or origin.source or origin.relation
    return (_link(row), proofs, how, origin.date or "not recorded")


def _link(row: SchemeRecord) -> str:
    return f'<a href="catalogue/{row.page}">{row.entry.name or row.entry.digest[:12]}</a> ({row.entry.digest[:12]})'
