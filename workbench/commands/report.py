"""`lcma report`"""

from __future__ import annotations

from pathlib import Path

import click

from ...errors import LcmaError
from ..bench_report import benchmarks_page, block_low_rank_page
from ..board import LARGEST
from ..destination import claim, write, writing
from ..figures import FIGURES, write_figures
from ..help import lcma_command
from ..options import Choice, argument, option
from ..output import print_json, wants_json
from ..report import board_json, catalogue_page, records_page, structured_page

PAGES = {"catalogue": catalogue_page, "records": records_page, "structured": structured_page}
FROM_ROWS = {"benchmarks": benchmarks_page, "block-low-rank": block_low_rank_page}


@lcma_command
def command(
    *,
    subject: str = argument(type=Choice([*PAGES, *FROM_ROWS, "figures"])),
    out: Path | None = option(metavar="FILE|FOLDER"),
    results: Path = option(type=click.Path(path_type=Path, file_okay=False), default=Path("docs/results")),
    up_to: int = option(type=click.IntRange(2, LARGEST), default=LARGEST),
) -> None:
    if wants_json():
        if subject != "catalogue":
            raise click.UsageError("--json is for the catalogue")
        print_json(board_json(up_to))
        return
    if subject not in PAGES and not results.is_dir():
        raise LcmaError(f"{results} is no folder; name the one with the rows of lcma bench by --results")
    if subject == "figures":
        _write_figures(results, out or Path("docs/figures"))
        return
    claim(out, results.glob("*.jsonl"))
    page = PAGES[subject]() if subject in PAGES else FROM_ROWS[subject](results)
    if out is None:
        click.echo(page, nl=False)
        return
    write(out, page)


def _write_figures(results: Path, out: Path) -> None:
    """Write all figures and print what each shows, or why it is missing."""
    for drawn in FIGURES:
        for suffix in (".svg", ".txt"):
            claim(out / f"{drawn.name}{suffix}")
    with writing(out):
        written = write_figures(results, out)
    for figure in written:
        if figure.missing:
            click.echo(f"lcma: {figure.name} was left out: {figure.missing}", err=True)
        else:
            click.echo(f"{out / figure.name}.svg: {figure.alt}")
