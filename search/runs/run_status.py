"""Status of runs, read from their folders, and merging of their finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...home import write_atomic
from ...schemes_db import Target
from .config import RunConfig
from .folder import Checkpoint, RunFolder
from .locked_folder import RunFolderError
from .result import Find, Record, Unlifted


@dataclass(frozen=True)
class Status:
    """Status of a run according to its folder: `round`, `seconds` and `flips` are of the last checkpoint.

    `target` is its current format and `lowest` the lowest rank there, later finds included; `steps` are the
    schemes of smaller formats that it continued from.
    """

    path: Path
    config: RunConfig
    running: bool
    done: bool
    target: Target
    round: int
    seconds: float
    flips: int
    lowest: int
    finds: tuple[Find, ...]
    unlifted: tuple[Unlifted, ...]
    steps: tuple[Find, ...]

    @property
    def best(self) -> int | None:
        return min((found.scheme.rank for found in self.finds), default=None)

    @property
    def word(self) -> str:
        """`running`, `finished`, or `stopped` if `lcma resume` would continue."""
        return "running" if self.running else "finished" if self.done else "stopped"

    def to_json(self) -> dict[str, Any]:
        """Return the status as JSON values, finds by digest."""
        return {
            "folder": str(self.path),
            "state": self.word,
            "config": self.config.to_json(),
            "target": self.target.name,
            "rounds": self.round,
            "seconds": self.seconds,
            "flips": self.flips,
            "lowest_rank": self.lowest,
            "unlifted": len(self.unlifted),
            "schemes": [found.scheme.digest for found in self.finds],
            "steps": [found.scheme.digest for found in self.steps],
        }


def status(path: str | Path) -> Status:
    """Return the status of the run in a folder; it may be running.

    Raises:
        RunFolderError: the folder contains no run, or its files are damaged.
    """
    folder = RunFolder.read(path)
    running = folder.running
    checkpoint, records = folder.checkpoint(), folder.records()
    last = len(folder.config.stages) - 1
    found = [record for record in records if record.stage == last]
    finds = tuple(record.found for record in found if isinstance(record.found, Find))
    unlifted = tuple(record.found for record in found if isinstance(record.found, Unlifted))
    steps = tuple(record.found for record in records if record.stage < last and isinstance(record.found, Find))
    if checkpoint is None:
        checkpoint = Checkpoint(0, 0, 0.0, 0.0, folder.config.start_rank, 0, False, {})
    target = folder.config.stages[checkpoint.stage].target
    reached = [record.found.origin.rank for record in records if record.stage == checkpoint.stage]
    spent, lowest = (checkpoint.round, checkpoint.seconds, checkpoint.flips), min([checkpoint.lowest, *reached])
    state = (folder.path, folder.config, running, checkpoint.done, target)
    return Status(*state, *spent, lowest, finds, unlifted, steps)


def merge(
    paths: Sequence[str | Path], out: str | Path | None = None, *, replace: bool = False
) -> tuple[tuple[Status, ...], tuple[Find, ...]]:
    """Return the status of the runs of several folders and their distinct finds, lowest rank first.

    With `out` the finds are also written to that file, one line each, as in a run's found.jsonl.

    Raises:
        RunFolderError: a folder contains no run, the runs have different targets or rings, or `out`
            exists (without `replace`) or can't be written.
    """
    runs = tuple(status(path) for path in paths)
    for run in runs:
        first, own = runs[0].config, run.config
        if (own.target, own.output_ring) != (first.target, first.output_ring):
            raise RunFolderError(
                f"{run.path} searched for {own.target} over {own.output_ring}, {runs[0].path} for {first.target} over "
                f"{first.output_ring}: merge like with like"
            )
    distinct = {found.scheme.digest: found for run in runs for found in run.finds}
    finds = tuple(sorted(distinct.values(), key=lambda found: (found.scheme.rank, found.scheme.digest)))
    if out is not None:
        if not replace and Path(out).is_file():
            raise RunFolderError(f"{out} can't be written: it exists; name another file")
        try:
            write_atomic(Path(out), "".join(Record(0, 0, found).to_line() for found in finds))
        except OSError as error:
            raise RunFolderError(f"{out} can't be written: {error.strerror}") from None
    return runs, finds
