"""`lcma analyse`"""

from __future__ import annotations

from pathlib import Path

import click

from ..analysis.causal import DEFAULT_SCHEMES, analysis, draw
from ..destination import claim, writing
from ..help import lcma_command
from ..options import Choice, argument, option
from ..output import answer, print_table


@lcma_command
def command(
    *,
    subject: str = argument(type=Choice(["causal"])),
    names: tuple[str, ...] = option("--scheme", metavar="SCHEME"),
    levels: int = option(type=click.IntRange(1, 8), default=1),
    errors: bool = option(),
    picture: Path | None = option(metavar="FILE"),
) -> None:
    claim(picture)
    found = analysis(names or DEFAULT_SCHEMES, levels, errors)
    if picture is not None:
        with writing(picture):
            draw(names or DEFAULT_SCHEMES, levels, picture)
    data = {title: [dict(zip(columns, row, strict=True)) for row in rows] for title, columns, rows in found}

    def show() -> None:
        for title, columns, rows in found:
            click.echo(title)
            print_table(columns, rows)

    answer(data, show)
