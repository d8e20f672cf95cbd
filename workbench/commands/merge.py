"""`lcma merge`"""

from __future__ import annotations

from pathlib import Path

import click

from ...search import merge
from ...search.runs.keep import KEPT, keep_finds
from ..destination import claim
from ..help import lcma_command
from ..options import path_option
from ..output import print_json
from .status import print_runs


@lcma_command("merge", json="runs and finds")
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@path_option("--out", metavar="FILE", help="Write the finds there too, one line each.")
def command(folders: tuple[Path, ...], out: Path | None, as_json: bool) -> None:
    """Merge the finds of several searches.

    They are proven again, each once, and stored in the catalogue.
    """
    if out is not None:
        claim(out, [path for folder in folders for path in folder.glob("*")])
    runs, finds = merge(folders, out, replace=True)
    fresh = keep_finds(finds, every=True).count(KEPT)
    if as_json:
        print_json(
            {"runs": [run.to_json() for run in runs], "schemes": [found.scheme.digest for found in finds], "new": fresh}
        )
        return
    print_runs(list(runs))
    ranks = [found.scheme.rank for found in finds]
    counts = ", ".join(f"{ranks.count(rank)} of rank {rank}" for rank in sorted(set(ranks)))
    click.echo(f"{len(finds)} distinct schemes ({counts or 'none'}), {fresh} new to the catalogue")
