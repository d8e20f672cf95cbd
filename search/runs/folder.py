"""Folder of a run: its settings, its finds, its last checkpoint, and a lock.

run.json     the settings and versions, written once
start.json   the scheme that the walks start from, if it is not the naive one
found.jsonl  one line a find, synced before the round counts as done
state.npz    the walks and pools after a round, replaced atomically
lock         locked (flock) by the process that writes here
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...home import write_atomic
from ...schemes_db.formats import lcma_json
from ...schemes_db.formats.strict_json import loads
from ...version import __version__
from .code import code_hash
from .config import RunConfig
from .field_types import check_field_types
from .locked_folder import (
    LockedFolder,
    RunFolderError,
    complete_lines,
    drop_torn_line,
    intact,
    locked,
    new_folder,
    reported,
    signed,
)
from .record import Record
from .snapshot import Arrays

FORMAT = 4


_FACTS = ("stage", "round", "seconds", "gained", "lowest", "flips", "done")


@dataclass(frozen=True)
class Checkpoint:
    """The walks and pools after `round` rounds, with the elapsed time, and the lowest rank at this stage of the run."""

    stage: int
    round: int
    seconds: float
    gained: float
    lowest: int
    flips: int
    done: bool
    arrays: Arrays


class RunFolder(LockedFolder):
    """An open run folder. `RunFolder.create` and `RunFolder.open` acquire the lock; `close` releases it."""

    def __init__(self, path: Path, config: RunConfig, lock: BinaryIO | None) -> None:
        super().__init__(path, lock)
        self.config = config

    @classmethod
    def create(cls, path: str | Path, config: RunConfig) -> RunFolder:
        """Create a run folder.

        Raises:
            RunFolderError: it contains a run already, or can't be written.
        """
        path = new_folder(path)
        folder = cls(path, config, signed(locked(path)))
        about = {
            "lcma_run": FORMAT,
            "version": __version__,
            "code": code_hash(),
            "versions": _versions(),
            "config": config.to_json(),
        }
        with reported(path):
            if config.start is not None:
                write_atomic(path / "start.json", lcma_json.render(config.start))
            (path / "found.jsonl").touch()
            write_atomic(path / "run.json", json.dumps(about, indent=1) + "\n")
        return folder

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Open the folder of a run to continue it.

        Raises:
            RunFolderError: it contains no run, was made by other code, or is locked by another process.
        """
        folder = cls.read(path)
        about = _about(folder.path)
        if about["code"] != code_hash():
            raise RunFolderError(
                f"{path} was made by other code (lcma {about['version']}, {about['code']}; this is {__version__}, "
                f"{code_hash()}): go on with that, or take its finds with `lcma merge {path}`"
            )
        folder._lock = signed(locked(folder.path))
        drop_torn_line(folder.path / "found.jsonl")
        return folder

    @classmethod
    def read(cls, path: str | Path) -> RunFolder:
        """Open the folder of a run for reading, without the lock.

        Raises:
            RunFolderError: it contains no run, or its settings can't be read.
        """
        path = Path(path)
        about = _about(path)
        start_file, start = path / "start.json", None
        with intact(start_file):
            if start_file.exists():
                start = lcma_json.parse(start_file.read_text())[0].scheme
        with intact(path / "run.json"):
            return cls(path, RunConfig.from_json(about["config"], start), None)

    def append(self, records: list[Record]) -> None:
        """Append finds, synced to the disk, all or none.

        Raises:
            RunFolderError: the disk is full; the file is unchanged.
        """
        if not records:
            return
        payload = "".join(record.to_line() for record in records).encode()
        with reported(self.path), (self.path / "found.jsonl").open("r+b") as stream:
            end = stream.seek(0, os.SEEK_END)
            try:
                stream.write(payload)
                stream.flush()
                os.fsync(stream.fileno())
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(stream.fileno(), end)
                raise

    def records(self) -> list[Record]:
        """Return the finds so far, each proven again, without an incomplete last line.

        Raises:
            RunFolderError: a line can't be read, or its scheme is not valid.
        """
        records = []
        for number, line in complete_lines(self.path / "found.jsonl"):
            with intact(Path(f"{self.path / 'found.jsonl'}:{number}")):
                records.append(Record.from_line(line.decode()))
        return records

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint.

        Raises:
            RunFolderError: the disk is full; the last checkpoint is unchanged.
        """
        facts = {name: getattr(checkpoint, name) for name in _FACTS}
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


def _about(path: Path) -> dict[str, Any]:
    if not (path / "run.json").exists():
        raise RunFolderError(f"{path} holds no run: `lcma search TARGET --out {path}` starts one")
    with intact(path / "run.json"):
        data = loads((path / "run.json").read_text())
        if data["lcma_run"] != FORMAT:
            raise RunFolderError(f"{path} is a run folder of format {data['lcma_run']}; this lcma knows {FORMAT}")
        return {"version": str(data["version"]), "code": str(data["code"]), "config": data["config"]}


def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import version

    return {"python": platform.python_version(), "numpy": np.__version__, "numba": version("numba")}
