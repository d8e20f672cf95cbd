"""`lcma report`"""

from __future__ import annotations

from pathlib import Path

import click

from ...errors import LcmaError
from ...home import write_atomic
from ..report import catalogue_page
from ..structured_report import structured_page

PAGES = {"catalogue": catalogue_page, "structured": structured_page}


@click.command("report")
@click.argument("subject", type=click.Choice(list(PAGES)))
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Where to write. Default: stdout.")
def command(subject: str, out: Path | None) -> None:
    """Write the shipped schemes as a page of Markdown.

    `catalogue`: formats up to 5x5x5 with rank, gap to the best known, additions and origin, and
    larger ones by composition. `structured`: products with a structure, the best known and ours.
    """
    page = PAGES[subject]()
    if out is None:
        click.echo(page, nl=False)
        return
    try:
        write_atomic(out, page)
    except OSError as error:
        raise LcmaError(f"{out} can't be written: {error.strerror}") from None
