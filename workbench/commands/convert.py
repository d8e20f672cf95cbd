"""`lcma convert`"""

from __future__ import annotations

from pathlib import Path

import click

from ...schemes_db import Ring, Target
from ...schemes_db.formats import FORMATS, WRITERS, format_for, render
from ...schemes_db.formats.parts import companions
from ...verify import load
from ..destination import claim, write
from ..help import lcma_command
from ..options import RING, TARGET, Choice, argument, option
from ..output import answer, scheme_facts, wants_json


@lcma_command
def command(
    *,
    source: str = argument("IN"),
    destination: str = argument("OUT"),
    to_format: str | None = option("--to", type=Choice(list(WRITERS))),
    from_format: str | None = option("--from", type=Choice(list(FORMATS))),
    target: Target | None = option(type=TARGET, metavar="TARGET"),
    ring: Ring | None = option(type=RING, metavar="RING"),
    allow_pickle: bool = option(),
    rounded: bool = option("--round"),
) -> None:
    if wants_json() and destination == "-":
        raise click.UsageError("--json is for a scheme that is written to a file")
    if destination != "-":
        claim(destination, [source, *companions(Path(source))])
    scheme, _ = load(source, from_format, target, ring, allow_pickle=allow_pickle, rounded=rounded)
    to_format = to_format or format_for(destination)
    content = render(scheme, to_format)
    if destination == "-":
        click.echo(content, nl=False)
        return
    write(destination, content)
    data = {"file": destination, "format": to_format, **scheme_facts(scheme)}
    answer(data, lambda: click.echo(f"{destination}: {scheme!r}", err=True))
