"""A catalogue to a folder of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import LcmaError
from ...schemes_db import costs
from ...schemes_db.catalog import Catalog
from ...schemes_db.drawing import draw
from ...schemes_db.formats import WRITERS, lcma_json, render
from ...version import __version__
from ..destination import writing
from ..scheme_record import SchemeRecord
from . import facts
from .facts import MAX_MEASUREMENTS, Benchmarks, benchmarks, measured, shown
from .folder import Folder, SiteError, replaced
from .fronts import fewest_additions, front_plot, records
from .heat import heat_maps, structured
from .listing import data_script, family, listing, shortest_name

MAX_KIN, FAMILIES = 60, ("Made from", "Others made from it")
"""Parents, and children, that a page links, and what it calls them."""


@dataclass(frozen=True)
class Built:
    """The result of a build."""

    out: Path
    schemes: int
    files: int
    bytes: int
    largest_page: int
    damaged: tuple[str, ...] = ()
    """The faults of rows that are left out."""


def build_site(
    out: Path, catalog: Catalog, on_progress: Callable[[str], None] = lambda text: None, results: Path | None = None
) -> Built:
    """Write the pages of a catalogue to the folder `out`, whole or not at all.

    `results` is a folder of rows of `lcma bench`: those that name a scheme are on its page.
    A row whose data are damaged is named on the first page, and has none of its own.
    Two builds of the same catalogue are equal byte for byte. A site of ours at `out` is replaced.

    Raises:
        SiteError: Jinja2 is missing, or `out` holds what is not of a site.
        SchemeFormatError: a file of results holds what is not a row.
        LcmaError: `out` can't be written.
    """
    # Inside built documentation, of which Sphinx's inventory is the sign, every page links to it.
    pages = templates(docs="../index.html" if (out.absolute().parent / "objects.inv").is_file() else None)
    rows = {} if results is None else benchmarks(results)
    with writing(out), replaced(out) as folder:
        damaged: list[str] = []
        count = _fill(folder, pages, catalog, damaged, on_progress, rows)
    largest = max(size for name, size in folder.sizes.items() if name.endswith(".html"))
    return Built(out, count, len(folder.sizes), sum(folder.sizes.values()), largest, tuple(damaged))


def _fill(
    folder: Folder,
    pages: Any,
    catalog: Catalog,
    damaged: list[str],
    on_progress: Callable[[str], None],
    rows: Benchmarks,
) -> int:
    """Write all pages and files; returns the number of schemes, and appends the faults of the others to `damaged`."""
    listed = listing(catalog, damaged.append)
    for name in STATIC:
        folder.write(f"static/{name}", read(f"static/{name}"))
    folder.write("static/schemes.js", data_script(listed))
    index = {
        "maps": heat_maps(listed),
        "structured": structured(listed),
        "listed": listed,
        "plot": front_plot(listed),
        "fewest": fewest_additions(listed),
        "records": records(listed),
        "damaged": damaged,
    }
    folder.write("index.html", pages.get_template("index.html").render(index))
    folder.write("verify.html", pages.get_template("verify.html").render())
    by_digest = {row.entry.digest: row for row in listed}
    families = family(catalog, listed)
    for position, row in enumerate(listed):
        on_progress(f"page {position + 1} of {len(listed)}")
        files = list(downloads(row))
        for file in files:
            if not file.refusal:
                folder.write(f"schemes/{file.file}", file.content)
        own = [measured(taken) for taken in catalog.measurements(row.entry.digest)[-MAX_MEASUREMENTS:]]
        kin = [_kin(pairs.get(row.entry.digest, []), by_digest) for pairs in families]
        values = {
            **_values(row, by_digest),
            "kin": [(name, some[:MAX_KIN], len(some)) for name, some in zip(FAMILIES, kin, strict=True) if some],
            "previous": listed[position - 1] if position else None,
            "next": listed[position + 1] if position + 1 < len(listed) else None,
            "files": files,
            "call": shortest_name(row),
            "measurements": own + rows.get(row.entry.name or "", [])[-MAX_MEASUREMENTS:],
        }
        folder.write(row.page, pages.get_template("scheme.html").render(values))
    return len(listed)


def _kin(pairs: Iterable[tuple[str, str]], by_digest: Mapping[str, SchemeRecord]) -> list[dict[str, Any]]:
    """Parents or children for a template: `row` is a row of ours, None for a scheme that is not in the catalogue."""
    return [{"digest": one, "relation": relation, "row": by_digest.get(one)} for one, relation in pairs]


def _values(row: SchemeRecord, by_digest: Mapping[str, SchemeRecord]) -> dict[str, Any]:
    """The template's values of a scheme's page; `by_digest` are the schemes that steps may link to."""
    scheme, certificate = row.stored
    steps = scheme.provenance.history
    return {
        "row": row,
        "scheme": scheme,
        "drawing": draw(scheme.target, scheme.factors, costs.product_kinds(scheme)),
        "certificate": certificate,
        "steps": [(step, _kin(((digest, "") for digest in step.of), by_digest)) for step in steps],
        "title": scheme.name or f"{row.label}:{row.entry.rank}",
        "runs": not (scheme.ring.characteristic or scheme.gaussian) and scheme.target.is_product,
    }


EVERY_FORMAT_LIMIT = 1_000_000
"""Nonzeros up to which all formats are written; a larger scheme is written in our own alone."""


@dataclass(frozen=True)
class Download:
    """A file beside the page, or the reason why there is none."""

    format: str
    file: str
    convention: str
    content: bytes = b""
    refusal: str = ""


def downloads(row: SchemeRecord) -> Iterator[Download]:
    """The files of a scheme."""
    (scheme, certificate), stem = row.stored, row.stem
    taken: set[str] = set()
    nonzeros = sum(factor.nnz for factor in scheme.factors)
    for name, format_ in WRITERS.items():
        file = f"{stem}{format_.suffix}" if format_.suffix not in taken else f"{stem}-{name}{format_.suffix}"
        taken.add(format_.suffix)
        if name == lcma_json.NAME:
            yield Download(name, file, format_.convention, lcma_json.render(scheme, certificate).encode())
        elif nonzeros > EVERY_FORMAT_LIMIT:
            yield Download(name, file, format_.convention, refusal=f"too large; use lcma export --format {name}")
        else:
            try:
                yield Download(name, file, format_.convention, render(scheme, name))
            except LcmaError as error:
                yield Download(name, file, format_.convention, refusal=str(error))


if TYPE_CHECKING:
    import jinja2

STATIC = ("site.css", "site.js", "verify.js", "verify_page.js")


def templates(docs: str | None = None) -> jinja2.Environment:
    """The templates, compiled once a build; `docs` is where the documentation is, from the site's root.

    Raises:
        SiteError: Jinja2 is not installed.
    """
    try:
        import jinja2
    except ImportError:
        raise SiteError("Jinja2, which makes the pages, is not installed: pip install 'lcma[report]'") from None
    found = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: read(f"templates/{name}")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {"shown": shown, "signed": lambda gap: f"{gap:+g}".replace("-", "\u2212"), "size": size}
    found.globals |= {"version": __version__, "docs": docs, "facts": facts}
    return found


def read(name: str) -> str:
    """A template or a static file of this package."""
    return (resources.files(__package__ or __name__) / name).read_text(encoding="utf-8")


def size(count: int) -> str:
    """A number of bytes for people."""
    return f"{count} B" if count < 1000 else f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1e6:.1f} MB"
