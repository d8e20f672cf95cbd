"""`lcma verify`"""

from __future__ import annotations

import json

import click

from ...errors import SchemeFormatError
from ...schemes_db import costs, parse_ring, parse_target
from ...schemes_db.formats import FORMATS
from ...verify import METHODS, Report, verify_file
from ..output import ratio

EXIT_INVALID = 1
EXIT_UNREADABLE = 65


@click.command("verify")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(list(METHODS)),
    help="How to prove; may be given twice. Default: exact.",
)
@click.option("--ring", metavar="RING", help="Prove over this ring (Z, Q, Z2) and no other.")
@click.option("--target", metavar="TARGET", help="What the scheme should compute, where the file does not say.")
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), help="The files' format. Default: by content.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a scheme, one a line.")
@click.option("-q", "--quiet", is_flag=True, help="The first line only, and that only for failures.")
def command(
    files: tuple[str, ...],
    methods: tuple[str, ...],
    ring: str | None,
    target: str | None,
    format_: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Prove or refute the schemes in files.

    The first line is the verdict. Exit code 0: all are valid (over Z2 at least, unless --ring says
    otherwise); 1: one is not; 65: one can't be read.
    """
    wanted_target, wanted_ring = parse_target(target) if target else None, parse_ring(ring) if ring else None
    worst = 0
    for file in files:
        try:
            reports = verify_file(file, methods or ("exact",), format_, wanted_target, wanted_ring)
        except SchemeFormatError as error:
            worst = EXIT_UNREADABLE
            if as_json:
                click.echo(json.dumps({"lcma_report": 1, "file": file, "ok": False, "unreadable": str(error)}))
            else:
                click.echo(f"lcma: {error}", err=True)
            continue
        for report in reports:
            if not report.ok:
                worst = max(worst, EXIT_INVALID)
            if as_json:
                click.echo(json.dumps(report.to_json()))
            elif not quiet or not report.ok:
                _print(report, headline_only=quiet, with_file=len(files) > 1 or quiet)
    return worst


def _print(report: Report, headline_only: bool, with_file: bool) -> None:
    click.echo(f"{report.headline()}{f'  {report.label}' if with_file else ''}")
    if headline_only:
        return
    scheme = report.scheme
    full, half = costs.full_and_half(scheme)
    known = report.known
    values = ", ".join(str(value) for value in scheme.coefficients[:12]) + (
        ", ..." if len(scheme.coefficients) > 12 else ""
    )
    lines = {
        "format": f"{report.format}, third factor by {' and by '.join(report.conventions)}",
        "coefficients": f"{{{values}}}{' (ternary)' if scheme.ternary and not scheme.ring.characteristic else ''}",
        "additions": str(costs.additions(scheme)),
        "digest": scheme.digest,
        "best known": f"rank {known.rank}" + (f", {known.full} full + {known.half} half" if known.half else "")
        if known
        else "no entry in the tables",
    }
    if half:
        lines["products"] = f"{full} full + {half} half; one level {ratio(costs.one_level_cost(scheme))}"
    for name, text in lines.items():
        click.echo(f"  {name + ':':<14}{text}")
    for note in report.notes:
        click.echo(f"  note: {note}")
