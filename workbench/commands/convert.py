"""`lcma convert`"""

from __future__ import annotations

from pathlib import Path

import click

from ...schemes_db import parse_ring, parse_target
from ...schemes_db.formats import FORMATS, WRITERS, format_for, render
from ...schemes_db.formats.parts import companions
from ...verify import load
from ..destination import claim, write
from ..help import lcma_command
from ..options import Choice
from ..output import print_json, scheme_facts


@lcma_command("convert", json="the result")
@click.argument("source", metavar="IN")
@click.argument("destination", metavar="OUT")
@click.option("--to", "to_format", type=Choice(list(WRITERS)), help="The format to write. Default: by OUT's suffix.")
@click.option("--from", "from_format", type=Choice(list(FORMATS)), help="The format of IN. Default: by content.")
@click.option("--target", metavar="TARGET", help="The bilinear map of the scheme, if IN does not state it.")
@click.option("--ring", metavar="RING", help="The ring of the coefficients, where IN does not say.")
@click.option("--allow-pickle", is_flag=True, help="Read object arrays of .npz files; nothing in them is run.")
@click.option("--round", "rounded", is_flag=True, help="Write the exact scheme that rounding the coefficients gives.")
def command(
    source: str,
    destination: str,
    to_format: str | None,
    from_format: str | None,
    target: str | None,
    ring: str | None,
    allow_pickle: bool,
    rounded: bool,
    as_json: bool,
) -> None:
    """Verify a scheme file and write it in another format. OUT may be - for stdout."""
    wanted, over = parse_target(target) if target else None, parse_ring(ring) if ring else None
    if as_json and destination == "-":
        raise click.UsageError("--json is for a scheme that is written to a file")
    if destination != "-":
        claim(destination, [source, *companions(Path(source))])
    scheme, _ = load(source, from_format, wanted, over, allow_pickle=allow_pickle, rounded=rounded)
    to_format = to_format or format_for(destination)
    content = render(scheme, to_format)
    if destination == "-":
        click.echo(content, nl=False)
        return
    write(destination, content)
    if as_json:
        print_json({"file": destination, "format": to_format, **scheme_facts(scheme)})
    else:
        click.echo(f"{destination}: {scheme!r}", err=True)
