"""Folder of a run: its settings, its finds, its last checkpoint, and a lock.

run.json     the settings and versions, written once
start.json   the scheme that the walks start from, if it is not the naive one
found.jsonl  one line a find, synced before the round counts as done
state.npz    the walks and what was gathered after a round, replaced atomically
lock         locked (flock) by the process that writes here
"""

from __future__ import annotations

import io
import json
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ...home import write_atomic
from ...schemes_db.formats import lcma_json
from ...schemes_db.formats.strict_json import loads
from .config import RunConfig
from .locked_folder import LockedFolder, check_field_types, intact, reported
from .result import Record
from .snapshot import Arrays


@dataclass(frozen=True)
class Checkpoint:
    """The state after `round` rounds, with the elapsed time, and the lowest rank at this stage of the run."""

    stage: int
    round: int
    seconds: float
    gained: float
    lowest: int
    flips: int
    done: bool
    arrays: Arrays


class RunFolder(LockedFolder[RunConfig]):
    """An open folder of a search."""

    KIND, FORMAT, COMMAND, LINES = "lcma_run", 5, "lcma search", ("found.jsonl",)
    OTHERWISE = "go on with that, or take its finds with `lcma merge {path}`"

    def _about(self) -> dict[str, Any]:
        if self.config.start is not None:
            with reported(self.path):
                write_atomic(self.path / "start.json", lcma_json.render(self.config.start))
        versions = {"python": platform.python_version(), "numpy": np.__version__, "numba": version("numba")}
        return {"versions": versions, "config": self.config.to_json()}

    @classmethod
    def _config_of(cls, path: Path, data: Any) -> RunConfig:
        start_file, start = path / "start.json", None
        with intact(start_file):
            if start_file.exists():
                start = lcma_json.parse(start_file.read_text())[0].scheme
        return RunConfig.from_json(data, start)

    def records(self) -> list[Record]:
        """Return the finds so far, each proven again; see `parsed_lines`."""
        return list(self.parsed_lines("found.jsonl", Record.from_line))

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint.

        Raises:
            RunFolderError: the disk is full; the last checkpoint is unchanged.
        """
        facts = {name: value for name, value in vars(checkpoint).items() if name != "arrays"}
        stream = io.BytesIO()
        np.savez_compressed(stream, facts=np.array(json.dumps(facts)), **checkpoint.arrays)  # type: ignore[arg-type]
        with reported(self.path):
            write_atomic(self.path / "state.npz", stream.getvalue())

    def checkpoint(self) -> Checkpoint | None:
        """Return the last checkpoint, or None before the first.

        Raises:
            RunFolderError: it is damaged.
        """
        path = self.path / "state.npz"
        if not path.exists():
            return None
        with intact(path):
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            facts = loads(str(arrays.pop("facts")))
            check_field_types(Checkpoint, facts)
            checkpoint = Checkpoint(**facts, arrays=arrays)
            if not 0 <= checkpoint.stage < len(self.config.stages) or min(checkpoint.round, checkpoint.flips) < 0:
                raise ValueError(f"there is no round {checkpoint.round} of stage {checkpoint.stage}")
            return checkpoint
