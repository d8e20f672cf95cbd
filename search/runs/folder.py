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
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...errors import LcmaError, SchemeFormatError
from ...home import write_atomic
from ...schemes_db.formats import lcma_json
from ...schemes_db.formats.strict_json import loads
from ...version import __version__
from .code import code_hash
from .config import RunConfig
from .locked_folder import LockedFolder, RunFolderError, locked, new_folder, reported, signed
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
        folder._drop_torn_line()
        return folder

    @classmethod
    def read(cls, path: str | Path) -> RunFolder:
        """Open the folder of a run for reading, without the lock.

        Raises:
            RunFolderError: it contains no run, or its settings can't be read.
        """
        path = Path(path)
        about = _about(path)
        try:
            start_file = path / "start.json"
            start = lcma_json.parse(start_file.read_text())[0].scheme if start_file.exists() else None
            return cls(path, RunConfig.from_json(about["config"], start), None)
        except (OSError, LcmaError) as error:
            raise RunFolderError(f"{path} is damaged: {error}") from None

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
        with reported(self.path):
            text = (self.path / "found.jsonl").read_text()
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            if not line.endswith("\n"):
                break
            try:
                records.append(Record.from_line(line))
            except LcmaError as error:
                raise RunFolderError(f"{self.path / 'found.jsonl'}:{number}: {error}") from None
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
        try:
            with np.load(self.path / "state.npz", allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            return Checkpoint(**json.loads(str(arrays.pop("facts"))), arrays=arrays)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            raise RunFolderError(f"{self.path / 'state.npz'} is damaged: {error}") from None

    def _drop_torn_line(self) -> None:
        """Remove an incomplete last line, left by a crash: its round is repeated, which finds its scheme again."""
        with reported(self.path), (self.path / "found.jsonl").open("r+b") as stream:
            content = stream.read()
            stream.truncate(content.rfind(b"\n") + 1)


def _about(path: Path) -> dict[str, Any]:
    try:
        data = loads((path / "run.json").read_text())
        if data["lcma_run"] != FORMAT:
            raise RunFolderError(f"{path} is a run folder of format {data['lcma_run']}; this lcma knows {FORMAT}")
        return {"version": str(data["version"]), "code": str(data["code"]), "config": data["config"]}
    except FileNotFoundError:
        raise RunFolderError(f"{path} holds no run: `lcma search TARGET --out {path}` starts one") from None
    except (OSError, UnicodeDecodeError, SchemeFormatError, KeyError, TypeError) as error:
        raise RunFolderError(f"{path / 'run.json'} is damaged: {error}") from None


def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import version

    return {"python": platform.python_version(), "numpy": np.__version__, "numba": version("numba")}
