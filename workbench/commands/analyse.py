"""`lcma analyse`"""

from __future__ import annotations

from pathlib import Path

import click

from ..destination import claim, writing
from ..help import lcma_command
from ..options import Choice, path_option
from ..output import print_json, print_table


@lcma_command("analyse", json="the result")
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
@path_option("--picture", metavar="FILE", help="Write a picture of the savings, as SVG.")
def command(
    subject: str, names: tuple[str, ...], levels: int, errors: bool, picture: Path | None, as_json: bool
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
        with writing(picture):
            draw(names or DEFAULT_SCHEMES, levels, picture)
    if as_json:
        print_json({title: [dict(zip(columns, row, strict=True)) for row in rows] for title, columns, rows in found})
        return
    for title, columns, rows in found:
        click.echo(title)
        print_table(columns, rows)
