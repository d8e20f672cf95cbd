"""`lcma export`"""

from __future__ import annotations

from pathlib import Path

import click

from ...errors import LcmaError
from ...home import write_atomic
from ...schemes_db.catalog import Catalog
from ...schemes_db.formats import FORMATS, format_named, lcma_json
from ..schemes import scheme_argument


@click.command("export")
@click.argument("scheme", required=False, metavar="[SCHEME]")
@click.option(
    "--all", "everything", is_flag=True, help="Write the user's own schemes, one file each, into the folder --out."
)
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="lcma-json", show_default=True)
@click.option("--out", metavar="FILE|FOLDER", help="Where to write. Default: stdout.")
def command(scheme: str | None, everything: bool, format_: str, out: str | None) -> None:
    """Write schemes of the catalogue as text.

    The format lcma-json keeps provenance and certificate.
    """
    if everything == (scheme is not None):
        raise click.UsageError("give a SCHEME, or --all")
    if everything and not out:
        raise click.UsageError("--all needs a folder: --out FOLDER")
    try:
        if scheme is not None:
            _export_one(scheme, format_, out)
        else:
            _export_all(format_, Path(str(out)))
    except OSError as error:
        raise LcmaError(f"{error.filename or out} can't be written: {error.strerror}") from None


def _export_one(scheme: str, format_: str, out: str | None) -> None:
    found, certificate = scheme_argument(scheme)
    text = lcma_json.render(found, certificate) if format_ == lcma_json.NAME else format_named(format_).render(found)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_atomic(Path(out), text)


def _export_all(format_: str, folder: Path) -> None:
    chosen = format_named(format_)
    with Catalog.open() as catalog:
        entries = catalog.entries(origin="user")
        for entry in entries:
            scheme, certificate = catalog.find(entry.digest)
            text = lcma_json.render(scheme, certificate) if format_ == lcma_json.NAME else chosen.render(scheme)
            stem = "".join(ch if ch.isalnum() or ch in "-_." else "_" for ch in entry.name or entry.target)
            write_atomic(folder / f"{stem}-{entry.digest[:12]}{chosen.SUFFIX}", text)
    click.echo(f"{len(entries)} schemes written to {folder}", err=True)
