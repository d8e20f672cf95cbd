"""`lcma analyse`"""

from __future__ import annotations

from pathlib import Path

import click

from ..destination import claim, unwritable
from ..help import Command
from ..options import Choice
from ..output import gives_json, print_json, print_table


@click.command("analyse", cls=Command)
@click.argument("subject", type=Choice(["causal"]))
@click.option(
    "--scheme",
    "names",
    multiple=True,
    metavar="SCHEME",
    help="One for triangular products; more than one may be given.",
)
@click.option("--levels", type=click.IntRange(1, 8), default=1, show_default=True, help="Levels of recursion.")
@click.option("--errors", is_flag=True, help="Measure the errors in fp32, fp16 and bf16 too; takes a minute.")
@click.option(
    "--picture", type=click.Path(path_type=Path), metavar="FILE", help="Write a picture of the savings, as SVG."
)
@gives_json()
def command(
    subject: str,
    names: tuple[str, ...],
    levels: int,
    errors: bool,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Count the savings and costs of schemes in causal attention.

    `causal`: operations with additions by context length and head size, for some models; memory
    traffic; schedules without a workspace; errors.
    """
    from ..analysis.causal import DEFAULT_SCHEMES, analysis, draw

    if picture is not None:
        claim(picture)
    found = analysis(names or DEFAULT_SCHEMES, levels, errors)
    if picture is not None:
        try:
            draw(names or DEFAULT_SCHEMES, levels, picture)
        except OSError as error:
            raise unwritable(picture, error) from None
    if as_json:
        print_json({title: [dict(zip(columns, row, strict=True)) for row in rows] for title, columns, rows in found})
        return
    for title, columns, rows in found:
        click.echo(title)
        print_table(columns, rows)
