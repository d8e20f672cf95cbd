"""Results below the tables of best known ranks and additions as Markdown, with proof, command and date."""

from __future__ import annotations

from ..schemes_db import Q, parse_target
from ..schemes_db.additions_table import fewest_additions, program_named, recipes
from ..schemes_db.catalog import Catalog
from ..schemes_db.ranks import best_known
from ..verify.program import check_program
from ..verify.report import proof_text
from .board import BoardCell, board_cells
from .output import markdown_table, page
from .scheme_record import SchemeRecord
from .site.fronts import records
from .site.listing import listing

_GENERAL = ("format", "rank", "table", "any field", "date of the table", "ring", "construction", "file", "command")
_STRUCTURED = ("target", "ring", "ours", "table", "source of the table", "scheme", "proof", "command or method", "date")
_ADDITIONS = ("format", "rank", "ours", "table", "scheme", "proof", "command or method", "date")


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
        general=markdown_table(_GENERAL, general),
        structured=markdown_table(_STRUCTURED, structured) if structured else "None in this version.",
        additions=markdown_table(_ADDITIONS, sums),
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
