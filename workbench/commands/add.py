"""`lcma add`"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import click

from ...errors import LcmaError, VerificationError
from ...schemes_db import parse_target
from ...schemes_db.catalog import Catalog
from ...schemes_db.formats import FORMATS
from ...verify import verify_file


@click.command("add")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--name", help="The name to keep the scheme under (one file only). Default: the file's own, else its stem."
)
@click.option("--source", default="", help="Where the scheme comes from, for its provenance.")
@click.option(
    "--improved", is_flag=True, help="Keep the Pareto frontier: skip what is dominated, drop what becomes so."
)
@click.option("--target", metavar="TARGET", help="What the scheme should compute, where the file does not say.")
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), help="The files' format. Default: by content.")
def command(
    files: tuple[str, ...], name: str | None, source: str, target: str | None, format_: str | None, improved: bool
) -> None:
    """Verify schemes from files and keep them in the catalogue. All are verified before the first is kept."""
    reports = []
    for file in files:
        reports += verify_file(file, format=format_, target=parse_target(target) if target else None)
    if name and len(reports) != 1:
        raise LcmaError(f"--name is for one scheme, not {len(reports)}")
    proven = []
    for report in reports:
        if report.certificate is None:
            raise VerificationError(f"{report.label}: {report.headline()}; nothing was added")
        proven.append((report, report.certificate))
    with Catalog.open() as catalog:
        for report, certificate in proven:
            path = Path(report.label.partition("#")[0])
            origin = report.scheme.provenance
            if not origin.kind:
                sha = hashlib.sha256(path.read_bytes()).hexdigest()
                origin = replace(origin, kind="import", source=source or path.name, file_sha256=sha)
            scheme = report.scheme.replace(name=name or report.scheme.name or path.stem, provenance=origin)
            fresh = catalog.add(scheme, certificate, "improved" if improved else "never")
            verdict = "added" if fresh else "not kept, there already or dominated:"
            click.echo(f"{verdict} {scheme.name} {scheme!r} {scheme.digest[:12]}")
