"""`lcma export`"""

from __future__ import annotations

import json
from pathlib import Path

import click

from ...errors import DamagedRowError
from ...schemes_db.catalog import Catalog
from ...schemes_db.formats import WRITERS, render
from ...schemes_db.names import file_stem
from ..board import board_cells, composed
from ..destination import claim, write
from ..help import lcma_command
from ..options import Choice, argument, option
from ..scheme_record import SchemeRecord
from ..schemes import scheme_argument


@lcma_command
def command(
    *,
    scheme: str | None = argument("[SCHEME]"),
    everything: bool = option("--all"),
    records: bool = option(),
    format_: str = option("--format", type=Choice(list(WRITERS)), default="lcma-json"),
    out: str | None = option(metavar="FILE|FOLDER"),
) -> int:
    if [scheme is not None, everything, records].count(True) != 1:
        raise click.UsageError("give a SCHEME, --all, or --records")
    if (everything or records) and not out:
        raise click.UsageError(f"{'--all' if everything else '--records'} needs a folder: --out FOLDER")
    if everything:
        return _export_all(format_, Path(str(out)))
    if records:
        _export_records(format_, Path(str(out)))
        return 0
    claim(out, [str(scheme)])
    found, certificate = scheme_argument(str(scheme))
    content = render(found, format_, certificate)
    if out is None:
        click.echo(content, nl=False)
    else:
        write(out, content)
    return 0


def _export_all(format_: str, folder: Path) -> int:
    """Write all of the user's schemes but those whose data are damaged; 1 if there are any of these."""
    damaged = 0
    with Catalog.open() as catalog:
        entries = catalog.entries(origin="user")
        stems = [file_stem(entry.name or entry.target, entry.digest) for entry in entries]
        paths = [folder / f"{stem}{WRITERS[format_].suffix}" for stem in stems]
        for path in paths:
            claim(path)
        for path, entry in zip(paths, entries, strict=True):
            try:
                record = SchemeRecord(entry, catalog)
                record.prove()
                write(path, render(record.scheme, format_, record.certificate))
            except DamagedRowError as error:
                damaged += 1
                click.echo(f"lcma: {error}", err=True)
    click.echo(f"{len(entries) - damaged} schemes written to {folder}", err=True)
    return int(damaged > 0)


def _export_records(format_: str, folder: Path) -> None:
    """Write all that is below the table over Z, composed and proven where it is no scheme of its own; and an index."""
    claim(folder / "index.json")
    index = []
    with Catalog.open() as catalog:
        for cell in board_cells(catalog):
            if cell.gap < 0:
                scheme, certificate = composed(cell.part, cell.shape, catalog)
                name = f"{cell.name}-r{scheme.rank}-{scheme.digest[:12]}{WRITERS[format_].suffix}"
                claim(folder / name)
                write(folder / name, render(scheme, format_, certificate))
                index.append(
                    {
                        "format": cell.name,
                        "rank": scheme.rank,
                        "table": cell.known.rank,
                        "date_of_table": cell.known.date,
                        "ring": "ZT" if scheme.ternary else scheme.ring.name,
                        "digest": scheme.digest,
                        "file": name,
                        "construction": cell.construction,
                    }
                )
    write(folder / "index.json", json.dumps(index, indent=1) + "\n")
    click.echo(f"{len(index)} schemes and index.json written to {folder}", err=True)
