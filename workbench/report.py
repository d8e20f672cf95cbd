"""The shipped schemes as one page of Markdown: ranks, gaps and origins by format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations_with_replacement

from ..schemes_db import Z2, Ring, Target, Z, parse_ring, parse_target
from ..schemes_db.catalog import Catalog
from ..schemes_db.composition import Part, best_composition
from ..schemes_db.pareto import Entry
from ..schemes_db.ranks import best_known
from ..schemes_db.uneven import Shape

KEPT_SIDE = 5
"""Formats up to this side have a row of their own."""

COMPARED_SIDE = 8
"""The tables of best known ranks end here."""

COMPOSED_SIDE = 16
"""Formats up to this side are summarised by compositions."""

HEAD = """# Catalogue

The schemes that come with lcma, each proven exact. This page is written by `lcma report catalogue`.

**Rank** is over the integers, *ternary* where all coefficients are -1, 0 or 1; **Z2** is the rank modulo 2 where
ours is lower. **Known** is the best rank that anybody has shown, over the integers and, behind the slash, modulo 2
where that is lower; **gap** is ours less that. **Additions** are those of the scheme as it stands, **shared** those
with shared sums computed once. **Origin** is the publication, or the command of our own search; `lcma show DIGEST` has
every step."""

_SMALL = ("format", "rank", "coefficients", "Z2", "known", "gap", "additions", "shared", "origin")
_OTHERS = ("target", "ring", "rank", "full + half", "known", "additions", "shared", "origin")
_COMPOSED = ("format", "rank", "known", "gap", "made of")


def catalogue_page() -> str:
    """The page: formats with schemes of their own, structured targets, and compositions up to 16x16x16 in short."""
    with Catalog.in_memory() as catalog:
        entries = catalog.entries()
        general = [entry for entry in entries if parse_target(entry.target).is_general]
        others = [entry for entry in entries if not parse_target(entry.target).is_general]
        kept = catalog.best_ranks()
        rows = _formats(general)
        parts = [
            HEAD,
            "## Formats up to 5x5x5, and larger ones with a scheme of their own",
            markdown_table(_SMALL, (_small_row(catalog, target, general) for target in rows)),
            "## Structured products",
            markdown_table(_OTHERS, (_other_row(catalog, entry) for entry in others)),
            "## Larger formats, composed of the above",
            "`lcma compose` has a scheme for every format up to 16x16x16 and beyond: direct sums, tensor products and "
            f"products of unequal blocks of the schemes above. {_reached(kept, rows)} The square ones:",
            markdown_table(
                _COMPOSED, (_composed_row((n, n, n), kept) for n in range(KEPT_SIDE + 1, COMPOSED_SIDE + 1))
            ),
        ]
    return "\n\n".join(parts) + "\n"


def _reached(kept: Mapping[Shape, tuple[int, str]], rows: Sequence[Target]) -> str:
    """Return how near all formats come to their best known ranks, and how many without a row are composed at it."""
    gaps, composed = [], []
    own = {target.shape for target in rows}
    for shape in combinations_with_replacement(range(2, COMPARED_SIDE + 1), 3):
        known = _known(Target.general(*shape), Z)
        if known is not None:
            rank = best_composition(shape, kept).rank
            gaps.append((rank - known) / known)
            if shape not in own:
                composed.append(rank - known)
    return (
        f"Of the {len(composed)} formats up to 8x8x8 that are not above, {composed.count(0)} have the best rank known "
        f"so. Over all {len(gaps)} formats up to 8x8x8 our rank is {100 * sum(gaps) / len(gaps):.2f}% above the best "
        f"known in the average, and {100 * max(gaps):.1f}% at worst."
    )


def _formats(entries: Sequence[Entry]) -> list[Target]:
    """All formats up to KEPT_SIDE, then the larger ones that have a scheme over the integers."""
    small = [Target.general(*shape) for shape in combinations_with_replacement(range(2, KEPT_SIDE + 1), 3)]
    mine = {parse_target(entry.target).shape for entry in entries if entry.ring == Z.name}
    return small + [Target.general(*shape) for shape in sorted(mine) if max(shape) > KEPT_SIDE]


def _small_row(catalog: Catalog, target: Target, entries: Sequence[Entry]) -> tuple[object, ...]:
    whole, binary = (_best(entries, target, ring) for ring in (Z, Z2))
    known, known2 = (_known(target, ring) for ring in (Z, Z2))
    lower = binary is not None and (whole is None or binary.rank < whole.rank)
    mod2 = binary.rank if binary is not None and lower else None
    both = [(whole.rank if whole else None, known)]
    if known2 != known or mod2 is not None:
        both.append((mod2 if mod2 is not None else both[0][0], known2))
    gaps = " / ".join("" if ours is None or best is None else str(ours - best) for ours, best in both)
    if whole is None:
        return (target, "", "", mod2, _pair(known, known2), gaps, "", "", binary and _origin(catalog, binary))
    coefficients = "ternary" if whole.ternary else "integer"
    sums = (whole.additions, whole.additions_cse)
    return (target, whole.rank, coefficients, mod2, _pair(known, known2), gaps, *sums, _origin(catalog, whole))


def _best(entries: Sequence[Entry], target: Target, ring: Ring) -> Entry | None:
    """The lowest rank, then the fewest additions."""
    mine = [entry for entry in entries if (entry.target, entry.ring) == (target.name, ring.name)]
    return min(mine, key=lambda e: (e.rank, e.additions_cse or e.additions, e.digest), default=None)


def _known(target: Target, ring: Ring) -> int | None:
    known = best_known(target, ring)
    return known.rank if known else None


def _pair(whole: int | None, binary: int | None) -> str:
    return f"{whole or ''}" + (f" / {binary}" if binary is not None and binary != whole else "")


def _other_row(catalog: Catalog, entry: Entry) -> tuple[object, ...]:
    products = f"{entry.full_products} + {entry.half_products}"
    known = _known(parse_target(entry.target), parse_ring(entry.ring))
    sums = (entry.additions, entry.additions_cse)
    return (entry.target, entry.ring, entry.rank, products, known, *sums, _origin(catalog, entry))


def _composed_row(shape: Shape, kept: Mapping[Shape, tuple[int, str]]) -> tuple[object, ...]:
    part = best_composition(shape, kept)
    known = _known(Target.general(*shape), Z)
    return ("x".join(map(str, shape)), part.rank, known, part.rank - known if known else None, _made_of(part))


def _made_of(part: Part) -> str:
    """The two parts of a composition."""
    names = [f"{'x'.join(map(str, inner.shape))}:{inner.rank}" for inner in part.parts]
    return f"{part.how} of {' and '.join(names)}" if names else part.how


def _origin(catalog: Catalog, entry: Entry) -> str:
    """The publication or the command of a scheme, and its digest; `lcma show DIGEST` has all steps."""
    origin = catalog.find(entry.digest)[0].provenance
    if origin.kind == "search":
        return f"{f'`{origin.command}`' if origin.command else 'our own search'}, {entry.digest[:12]}"
    remark = f" ({origin.remark})" if origin.remark else ""
    return f"{origin.source or origin.relation}{remark}, {entry.digest[:12]}"


def markdown_table(columns: Sequence[str], rows: Iterable[tuple[object, ...]]) -> str:
    """A table of Markdown; None is an empty cell."""
    lines = [columns, ["---"] * len(columns), *rows]
    cells = (["" if cell is None else str(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
