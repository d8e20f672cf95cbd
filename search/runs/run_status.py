"""How runs stand, from their folders alone, and several of them put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...schemes_db import Target
from .config import RunConfig
from .folder import Checkpoint, RunFolder
from .locked_folder import RunFolderError
from .record import Record
from .result import Find, Unlifted


@dataclass(frozen=True)
class Status:
    """A run as its folder shows it: `round`, `seconds`, `flips` and `lowest` are of the last checkpoint.

    `target` is the format that it works on and `lowest` the lowest rank there; `steps` are the
    schemes of smaller formats that it went on from.
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
        """The lowest rank among the finds."""
        return min((found.scheme.rank for found in self.finds), default=None)

    @property
    def word(self) -> str:
        """`running`, `finished`, or `stopped` where `lcma resume` would go on."""
        return "running" if self.running else "finished" if self.done else "stopped"

    def to_json(self) -> dict[str, Any]:
        """The standing as JSON values, finds by digest."""
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
    """How the run in a folder stands; it may be running.

    Raises:
        RunFolderError: no run is there, or its files are damaged.
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
    reached = [record.found.origin.rank for record in records if record.stage == checkpoint.stage]
    return Status(
        folder.path,
        folder.config,
        running,
        checkpoint.done,
        folder.config.stages[checkpoint.stage].target,
        checkpoint.round,
        checkpoint.seconds,
        checkpoint.flips,
        min([checkpoint.lowest, *reached]),
        finds,
        unlifted,
        steps,
    )


def merge(paths: Sequence[str | Path], out: str | Path | None = None) -> tuple[tuple[Status, ...], tuple[Find, ...]]:
    """The runs of several folders and their finds, each scheme once, lowest rank first.

    With `out` the finds are written there as well, one line each, as in a run's found.jsonl.

    Raises:
        RunFolderError: a folder holds no run, the runs have different targets or rings, or `out`
            exists or can't be written.
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
        _write(Path(out), finds)
    return runs, finds


def _write(path: Path, finds: tuple[Find, ...]) -> None:
    try:
        with path.open("x") as stream:
            stream.writelines(Record(0, 0, found).to_line() for found in finds)
    except OSError as error:
        raise RunFolderError(f"{path} can't be written: {error.strerror}") from None
