"""`lcma resume`"""

from __future__ import annotations

from pathlib import Path

import click

from ...search import resume, status
from ..finds import progress_line
from ..options import Duration
from ..progress import Progress
from .search import report


@click.command("resume")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--time", "seconds", type=Duration(), help="A new limit, counted from the run's beginning.")
@click.option("--rounds", type=click.IntRange(1), help="A new number of rounds in all.")
@click.option("--count", type=click.IntRange(1), help="A new number of finds to stop at.")
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Threads. The finds do not depend on it."
)
@click.option("--json", "as_json", is_flag=True, help="Statistics and finds as JSON.")
def command(
    folder: Path, seconds: float | None, rounds: int | None, count: int | None, jobs: int, as_json: bool
) -> int:
    """Go on with a search from its folder.

    After an interruption, a crash or a full disk it goes on from the last checkpoint.

    A broken round is repeated, so the finds are those of a run that was never broken.
    """
    name = status(folder).config.target
    with Progress(f"{name}: compiling the walk") as progress:
        result = resume(
            folder,
            rounds=rounds,
            seconds=seconds,
            count=count,
            jobs=jobs,
            on_progress=lambda standing: progress.update(progress_line(standing)),
        )
    return report(result, as_json, folder)
