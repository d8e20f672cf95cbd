"""`lcma status`"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ...search import RunFolderError, status
from ...search.improve.folder import ImproveFolder, is_improvement
from ..help import lcma_command
from ..options import argument
from ..output import print_figures, print_json, wants_json


@lcma_command
def command(*, folders: tuple[Path, ...] = argument("DIR...")) -> int:
    runs, others = list[dict[str, Any]](), list[dict[str, Any]]()
    damaged = 0
    for folder in folders:
        try:
            if is_improvement(folder):
                others.append(improvement(folder))
            else:
                runs.append(status(folder).to_json())
        except RunFolderError as error:
            damaged += 1
            click.echo(f"lcma: {error}", err=True)
    if wants_json():
        print_json([*runs, *others])
    for name, found in () if wants_json() else (("runs", runs), ("improvements", others)):
        if found:
            print_figures(name, found)
    return RunFolderError.exit_code if damaged else 0


def improvement(path: Path) -> dict[str, Any]:
    """Return the status of an improvement.

    Raises:
        RunFolderError: its files are damaged.
    """
    folder = ImproveFolder.read(path)
    running, state = folder.running, folder.state()
    return {
        "folder": str(path),
        "state": "running" if running else "finished" if state.done else "stopped",
        "config": asdict(folder.config),
        "turns": state.turns,
        "seconds": state.seconds,
        "gained": state.gained,
        "schemes": [scheme.digest for scheme in folder.schemes("found.jsonl")],
    }
