"""How runs stand, from their folders alone, and several of them put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .config import RunConfig
from .folder import RunFolder, RunFolderError
from .record import Record
from .result import Find, Unlifted


@dataclass(frozen=True)
class Status:
    """A run as its folder shows it: `round`, `seconds`, `flips` and `lowest` are of the last checkpoint."""

    path: Path
    config: RunConfig
    running: bool
    done: bool
    round: int
    seconds: float
    flips: int
    lowest: int
    finds: tuple[Find, ...]
    unlifted: tuple[Unlifted, ...]

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
            "rounds": self.round,
            "seconds": self.seconds,
            "flips": self.flips,
            "lowest_rank": self.lowest,
            "unlifted": len(self.unlifted),
            "schemes": [found.scheme.digest for found in self.finds],
        }


def status(path: str | Path) -> Status:
    """How the run in a folder stands; it may be running.

    Raises:
        RunFolderError: no run is there, or its files are damaged.
    """
    folder = RunFolder.read(path)
    running = folder.running
    checkpoint, records = folder.checkpoint(), folder.records()
    finds = tuple(record.found for record in records if isinstance(record.found, Find))
    unlifted = tuple(record.found for record in records if isinstance(record.found, Unlifted))
    lowest = min([folder.config.start_rank, *(record.found.origin.rank for record in records)])
    if checkpoint is None:
        return Status(folder.path, folder.config, running, False, 0, 0.0, 0, lowest, finds, unlifted)
    return Status(
        folder.path,
        folder.config,
        running,
        checkpoint.done,
        checkpoint.round,
        checkpoint.seconds,
        checkpoint.flips,
        min(lowest, checkpoint.lowest),
        finds,
        unlifted,
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
        if (own.target, own.over) != (first.target, first.over):
            raise RunFolderError(
                f"{run.path} searched for {own.target} over {own.over}, {runs[0].path} for {first.target} over "
                f"{first.over}: merge like with like"
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
