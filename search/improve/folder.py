"""The folder of an improvement: its settings, what it kept, what it starts from, and where it stands.

run.json      the settings and the hash of the code, written once
found.jsonl   one line a scheme that was kept, synced at once
starts.jsonl  one line a scheme that turns start from beside those of the catalogue
state.json    turns and seconds so far, replaced whole after every turn
lock          held by the process that writes here
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import LcmaError, PlanError
from ...home import write_atomic
from ...schemes_db import Scheme
from ...schemes_db.formats import lcma_json
from ...schemes_db.formats.strict_json import loads
from ...verify import certify
from ...version import __version__
from ..cluster.connection import Cluster
from ..runs.code import code_hash
from ..runs.locked_folder import LockedFolder, RunFolderError, locked, new_folder, reported, signed

FORMAT = 1
KIND = "lcma_improve"


@dataclass(frozen=True, kw_only=True)
class ImproveConfig:
    """What an improvement was asked to do: all but its threads.

    With an `address` turns are on `workers` workers of a Ray cluster, each with a `device` of its own; see `RunConfig`.
    `up_to` takes every format that fits into a full product among the targets, too; `retry` takes what earlier runs
    found to be dead ends for open again.
    """

    targets: tuple[str, ...]
    ring: str = "Z"
    seconds: float = 60.0
    seed: int = 0
    device: str = "cpu"
    address: str = ""
    workers: int = 0
    up_to: bool = False
    retry: bool = False
    command: str = ""

    @property
    def cluster(self) -> Cluster | None:
        """Where workers are, if not in this process.

        Raises:
            PlanError: an address of another form, or workers without one.
        """
        if self.workers and not self.address:
            raise PlanError("workers are of a cluster: give its address (local, auto, HOST:PORT)")
        return Cluster(self.address, self.workers) if self.address else None


@dataclass(frozen=True)
class ImproveState:
    """Where an improvement stands: the turns of every target, the seconds, and what it gained."""

    turns: dict[str, int]
    seconds: float = 0.0
    gained: int = 0
    done: bool = False


class ImproveFolder(LockedFolder):
    """An open folder; `create` and `open` take the lock, `close` gives it back."""

    def __init__(self, path: Path, config: ImproveConfig, lock: BinaryIO | None) -> None:
        super().__init__(path, lock)
        self.config = config

    @classmethod
    def create(cls, path: str | Path, config: ImproveConfig) -> ImproveFolder:
        """A new folder.

        Raises:
            RunFolderError: there is a run in it already, or it can't be written.
        """
        path = new_folder(path)
        folder = cls(path, config, signed(locked(path)))
        about = {KIND: FORMAT, "version": __version__, "code": code_hash(), "config": asdict(config)}
        with reported(path):
            for name in ("found.jsonl", "starts.jsonl"):
                (path / name).touch()
            write_atomic(path / "run.json", json.dumps(about, indent=1) + "\n")
        return folder

    @classmethod
    def open(cls, path: str | Path) -> ImproveFolder:
        """The folder of an improvement that is to go on.

        Raises:
            RunFolderError: none is there, it is of other code, or another process holds it.
        """
        folder = cls.read(path)
        if _about(folder.path)["code"] != code_hash():
            raise RunFolderError(
                f"{path} was made by other code than this: start anew with `lcma improve`, what it kept is in "
                f"the catalogue"
            )
        folder._lock = signed(locked(folder.path))
        return folder

    @classmethod
    def read(cls, path: str | Path) -> ImproveFolder:
        """The folder of an improvement to look at, without the lock.

        Raises:
            RunFolderError: none is there, or it is damaged.
        """
        about = _about(Path(path))
        try:
            config = ImproveConfig(**{**about["config"], "targets": tuple(about["config"]["targets"])})
        except (TypeError, KeyError) as error:
            raise RunFolderError(f"{Path(path) / 'run.json'} is damaged: {error}") from None
        return cls(Path(path), config, None)

    def append(self, name: str, scheme: Scheme) -> None:
        """Add a scheme to found.jsonl or starts.jsonl, synced to the disk.

        Raises:
            RunFolderError: the disk is full.
        """
        line = (json.dumps(lcma_json.to_json(scheme)) + "\n").encode()
        with reported(self.path), (self.path / name).open("ab") as stream:
            stream.write(line)
            stream.flush()
            os.fsync(stream.fileno())

    def schemes(self, name: str) -> Iterator[Scheme]:
        """The schemes of found.jsonl or starts.jsonl, each proven again; a line that was torn by a crash is left out.

        Raises:
            RunFolderError: a line can't be read, or its scheme does not pass.
        """
        with reported(self.path):
            lines = (self.path / name).read_text().splitlines(keepends=True)
        for number, line in enumerate(lines, 1):
            try:
                scheme = lcma_json.parse(line)[0].scheme
                certify(scheme)
            except LcmaError as error:
                if number == len(lines) and not line.endswith("\n"):
                    return
                raise RunFolderError(f"{self.path / name}:{number}: {error}") from None
            yield scheme

    def save(self, state: ImproveState) -> None:
        """Replace the state.

        Raises:
            RunFolderError: the disk is full; the last state is as it was.
        """
        with reported(self.path):
            write_atomic(self.path / "state.json", json.dumps(asdict(state)) + "\n")

    def state(self) -> ImproveState:
        """Where it stands, or at the beginning before its first turn was over.

        Raises:
            RunFolderError: the state is damaged.
        """
        try:
            data = loads((self.path / "state.json").read_text())
            return ImproveState(
                {str(name): int(n) for name, n in data["turns"].items()},
                **{name: data[name] for name in ("seconds", "gained", "done")},
            )
        except FileNotFoundError:
            return ImproveState({})
        except (OSError, LcmaError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunFolderError(f"{self.path / 'state.json'} is damaged: {error}") from None


def is_improvement(path: str | Path) -> bool:
    """Whether a folder is one of an improvement, as far as its run.json can be read."""
    try:
        return KIND in loads((Path(path) / "run.json").read_text())
    except (OSError, LcmaError, UnicodeDecodeError, TypeError):
        return False


def _about(path: Path) -> dict[str, Any]:
    try:
        data = loads((path / "run.json").read_text())
        if data[KIND] != FORMAT:
            raise RunFolderError(f"{path} is a folder of format {data[KIND]}; this lcma knows {FORMAT}")
        return {"code": str(data["code"]), "config": data["config"]}
    except FileNotFoundError:
        raise RunFolderError(f"{path} holds no run: `lcma improve TARGET --out {path}` starts one") from None
    except (OSError, UnicodeDecodeError, LcmaError, KeyError, TypeError) as error:
        if isinstance(error, RunFolderError):
            raise
        raise RunFolderError(f"{path / 'run.json'} is damaged: {error}") from None
