"""`lcma merge`"""

from __future__ import annotations

from pathlib import Path

import click

from ...search import merge
from ...search.runs.keep import KEPT, keep_finds
from ..destination import claim
from ..help import lcma_command
from ..options import argument, option
from ..output import answer, print_figures, wants_json


@lcma_command
def command(
    *,
    folders: tuple[Path, ...] = argument("DIR..."),
    out: Path | None = option(metavar="FILE"),
) -> None:
    claim(out, [path for folder in folders for path in folder.glob("*")])
    runs, finds = merge(folders, out, replace=True)
    fresh = keep_finds(finds, every=True).count(KEPT)
    digests, ranks = [found.scheme.digest for found in finds], [found.scheme.rank for found in finds]
    merged = [run.to_json() for run in runs]
    answer({"runs": merged, "schemes": digests, "new": fresh}, lambda: print_figures("runs", merged))
    if not wants_json():
        counts = ", ".join(f"{ranks.count(rank)} of rank {rank}" for rank in sorted(set(ranks)))
        click.echo(f"{len(finds)} distinct schemes ({counts or 'none'}), {fresh} new to the catalogue")
