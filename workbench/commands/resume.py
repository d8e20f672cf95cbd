"""`lcma resume`"""

from __future__ import annotations

from pathlib import Path

import click

from ...search import resume, status
from ...search.improve.folder import is_improvement
from ...search.improve.run import resume_improvement
from ...search.runs.keep import refuse_unwritable
from ..finds import best_finds
from ..help import lcma_command
from ..interrupts import Interrupts
from ..options import DURATION, POSITIVE, argument, option
from ..output import wants_json
from ..progress import COMPILING, Progress, beginning
from .improve import report as report_improvement
from .improve import teller
from .search import known_rank, report


@lcma_command("resume", json="statistics and finds")
def command(
    *,
    folder: Path = argument("DIR"),
    seconds: float | None = option("--time", type=DURATION, help="A new limit, counted from the run's beginning."),
    rounds: int | None = option(type=POSITIVE, help="A new number of rounds in all, of a search."),
    count: int | None = option(type=POSITIVE, help="A new number of finds to stop at, of a search."),
    jobs: int = option(type=POSITIVE, default=1, help="Threads. The finds of a search do not depend."),
    address: str = option(
        "--ray", default="", metavar="auto|local|HOST:PORT", help="Another Ray cluster than the run's for its workers."
    ),
    workers: int | None = option(type=POSITIVE, help="Another number of workers than the run's."),
) -> int:
    """Continue a search or an improvement from its folder.

    After an interruption, a crash or a full disk it continues from the last checkpoint.

    A broken round of a search is repeated, so the finds are those of a run that was never broken.
    """
    refuse_unwritable()
    if is_improvement(folder):
        if rounds or count:
            raise click.UsageError("--rounds and --count mean nothing to an improvement: give --time")
        with Progress(COMPILING) as progress, Interrupts() as interrupts:
            improved = resume_improvement(
                folder,
                seconds=seconds,
                address=address,
                workers=workers or 0,
                jobs=jobs,
                on_event=teller(progress, quiet=wants_json()),
                stop=lambda: interrupts.wanted,
            )
        return report_improvement(improved, folder)
    config = status(folder).config
    known = known_rank(config)
    with Progress(f"{config.target}: {beginning(config.method)}") as progress, Interrupts() as interrupts:
        result = resume(
            folder,
            rounds=rounds,
            seconds=seconds,
            count=count,
            address=address,
            workers=workers or 0,
            jobs=jobs,
            on_event=lambda standing: progress.update(f"{standing.line}{known}"),
            stop=lambda: interrupts.wanted,
        )
    return report(best_finds(result, count or config.count), folder)
