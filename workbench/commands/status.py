"""`lcma status`"""

from __future__ import annotations

from pathlib import Path

import click

from ...search import Status, status
from ..output import print_json, print_table


@click.command("status")
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Settings, standing and finds as JSON.")
def command(folders: tuple[Path, ...], as_json: bool) -> None:
    """Show how searches stand.

    Running or not: all is read from their folders.
    """
    runs = [status(folder) for folder in folders]
    if as_json:
        print_json([run.to_json() for run in runs])
        return
    print_runs(runs)


def print_runs(runs: list[Status]) -> None:
    """A table, one row a run."""
    print_table(
        ("folder", "target", "ring", "seed", "state", "rounds", "seconds", "lowest rank", "finds", "not lifted", "at"),
        [
            (
                run.path,
                run.config.target,
                run.config.ring,
                run.config.seed,
                run.word,
                run.round,
                round(run.seconds, 2),
                run.lowest,
                len(run.finds),
                len(run.unlifted),
                run.target,
            )
            for run in runs
        ],
    )
