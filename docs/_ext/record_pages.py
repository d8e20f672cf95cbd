"""Results below the tables of best known ranks and additions as Markdown, with proof, command and date."""

from __future__ import annotations

from lcma.schemes_db import Certificate, Proof, Provenance
from lcma.schemes_db.additions_table import fewest_additions, program_named, recipes
from lcma.schemes_db.catalog import Catalog
from lcma.verify.program import check_program
from lcma.workbench.report import markdown_table
from lcma.workbench.site.fronts import records
from lcma.workbench.site.listing import Listed, listing

INTRODUCTION = """# Results below the tables

This page is generated from the shipped catalogue and the tables that come with this version, `ranks_general.csv` and
`ranks_structured.csv` of `schemes_db/data`. [Records](../records.md) says what counts and what to check before a claim.
`lcma show DIGEST` prints a scheme with its certificate and all steps; `lcma export DIGEST --out FILE` writes it, and
`lcma verify --recheck FILE` proves it again. Links lead to the catalogue's page of a scheme, which has its files.
"""


def records_page() -> str:
    """Schemes with fewer multiplications, then those of the best known rank with fewer additions."""
    with Catalog.in_memory() as catalog:
        rows = listing(catalog)
        products = [_products(row, certificate, _origin(catalog, row)) for row, certificate in records(rows, catalog)]
        by_name = {row.entry.name: row for row in rows}
        sums = [
            (one.target.name, one.rank, one.additions, one.known.shared, *_sums(catalog, one.name, by_name))
            for one in fewest_additions()
            if one.known is not None and one.additions < one.known.shared
        ]
    columns = ("target", "ring", "ours", "table", "source of the table", "scheme", "proof", "command or method", "date")
    parts = [
        INTRODUCTION,
        "## Multiplications\n",
        "R = F + H products, F full and H half, in brackets F + H/2: the multiplications of one level over blocks.\n",
        markdown_table(columns, products) if products else "None in this version.",
        "\n## Additions\n",
        "With shared sums computed once, at the best known rank. The tables' counts are those of stored files; some\n"
        "are above what two smaller schemes side by side need. `lcma additions --all` compares all formats.\n",
        markdown_table(("format", "rank", "ours", "table", "scheme", "proof", "command or method", "date"), sums)
        if sums
        else "None in this version.",
    ]
    return "\n".join(parts) + "\n"


def _origin(catalog: Catalog, row: Listed) -> Provenance:
    return catalog.find(row.entry.digest)[0].provenance


def _products(row: Listed, certificate: Certificate, origin: Provenance) -> tuple[object, ...]:
    entry, known = row.entry, row.known
    if known is None:
        raise LookupError(entry.name)
    ours = f"{entry.rank} = {entry.full_products} + {entry.half_products} [{row.cost:g}]"
    full, half = (known.rank, 0) if known.full is None or known.half is None else (known.full, known.half)
    table = f"{known.rank} = {full} + {half} [{row.known_cost:g}]"
    return (row.label, entry.ring, ours, table, known.source, *_proven(row, certificate, origin))


def _sums(catalog: Catalog, name: str, rows: dict[str, Listed]) -> tuple[object, ...]:
    """Return the description of a program: that of its scheme, or the recipe that composes it."""
    if name in recipes():
        program = program_named(name)
        outcome = check_program(program)
        if not outcome.ok:
            raise LookupError(f"{name}: {outcome.explain()}")
        target = program.target
        proof = f"exact, {target.equations} equations, when this page was built"
        return (name, proof, f"`lcma additions --all`: {recipes()[name]}", "computed")
    scheme, certificate = catalog.find(rows[name].entry.digest)
    return _proven(rows[name], certificate, scheme.provenance)


def _proven(row: Listed, certificate: Certificate, origin: Provenance) -> tuple[object, ...]:
    """Scheme with a link to its page and files, proof, command and date."""
    entry = row.entry
    proofs = "; ".join(_proof(proof) for proof in certificate.proofs)
    how = "; ".join(f"`{step}`" for step in origin.history) or origin.source or origin.relation
    name = f'<a href="../catalogue/{row.page}">{entry.name or entry.digest[:12]}</a> ({entry.digest[:12]})'
    return (name, proofs, how, origin.date or "not recorded")


def _proof(proof: Proof) -> str:
    if proof.error_log2 is not None:
        return f"{proof.method}, {proof.rounds} rounds, error below 2^{proof.error_log2:.0f}"
    return f"{proof.method}, {proof.equations} equations"
