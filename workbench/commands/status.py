"""`lcma status`"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ...search import RunFolderError, Status, status
from ...search.improve.folder import ImproveFolder, is_improvement
from ..help import lcma_command
from ..options import argument
from ..output import print_json, print_table, wants_json


@lcma_command("status", json="settings, progress and finds")
def command(*, folders: tuple[Path, ...] = argument("DIR...")) -> int:
    """Show the progress of searches and improvements.

    Reads their folders, whether they are running or not. Exit code 3: one of them can't be read.
    """
    runs: list[Status] = []
    others: list[dict[str, Any]] = []
    damaged = 0
    for folder in folders:
        try:
            if is_improvement(folder):
                others.append(improvement(folder))
            else:
                runs.append(status(folder))
        except RunFolderError as error:
            damaged += 1
            click.echo(f"lcma: {error}", err=True)
    if wants_json():
        print_json([*(run.to_json() for run in runs), *others])
    elif runs:
        print_runs(runs)
    if others and not wants_json():
        print_improvements(others)
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


def print_improvements(found: list[dict[str, Any]]) -> None:
    """A table, one row an improvement."""
    columns = ("folder", "targets", "ring", "seed", "device", "state", "turns", "seconds", "gained", "kept")
    rows = []
    for one in found:
        settings = (one["config"][name] for name in ("ring", "seed", "device"))
        done = (sum(one["turns"].values()), round(one["seconds"], 2), one["gained"], len(one["schemes"]))
        rows.append((one["folder"], ",".join(one["config"]["targets"]), *settings, one["state"], *done))
    print_table(columns, rows)


def print_runs(runs: list[Status]) -> None:
    """A table, one row a run."""
    columns = ("folder", "target", "ring", "seed", "state", "rounds", "seconds", "lowest rank", "finds", "not lifted")
    rows = []
    for run in runs:
        settings, found = run.config, (run.lowest, len(run.finds), len(run.unlifted))
        done = (run.word, run.round, round(run.seconds, 2))
        rows.append((run.path, settings.target, settings.ring, settings.seed, *done, *found, run.target))
    print_table((*columns, "at"), rows)
