"""Folder of an improvement: its settings, finds, starts and state.

run.json      the settings and the hash of the code, written once
found.jsonl   one line a scheme that was stored in the catalogue, synced at once
starts.jsonl  one line a scheme that turns start from in addition to those of the catalogue
state.json    turns and seconds so far, replaced atomically after every turn
lock          locked by the process that writes here
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
from ..runs.field_types import check_field_types
from ..runs.locked_folder import (
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

FORMAT = 1
KIND = "lcma_improve"


@dataclass(frozen=True, kw_only=True)
class ImproveConfig:
    """Settings of an improvement, without its number of threads.

    With an `address` turns run on `workers` workers of a Ray cluster, each with its own `device`; see `RunConfig`.
    `up_to` includes every format that fits into a full product among the targets; `closure` all of the table of best
    known ranks; `retry` reopens the dead ends of earlier runs.
    """

    targets: tuple[str, ...] = ()
    ring: str = "Z"
    seconds: float = 60.0
    seed: int = 0
    device: str = "cpu"
    address: str = ""
    workers: int = 0
    up_to: bool = False
    closure: bool = False
    retry: bool = False
    command: str = ""

    @property
    def cluster(self) -> Cluster | None:
        """The cluster that runs the workers, None for this process.

        Raises:
            PlanError: an address of another form, or workers without one.
        """
        if self.workers and not self.address:
            raise PlanError("workers are of a cluster: give its address (local, auto, HOST:PORT)")
        return Cluster(self.address, self.workers) if self.address else None


@dataclass(frozen=True)
class ImproveState:
    """State of an improvement: the turns of every target, the seconds, the gain, and whether it is complete."""

    turns: dict[str, int]
    seconds: float = 0.0
    gained: int = 0
    done: bool = False


class ImproveFolder(LockedFolder):
    """An open folder; `create` and `open` acquire the lock, `close` releases it."""

    def __init__(self, path: Path, config: ImproveConfig, lock: BinaryIO | None) -> None:
        super().__init__(path, lock)
        self.config = config

    @classmethod
    def create(cls, path: str | Path, config: ImproveConfig) -> ImproveFolder:
        """Create a folder.

        Raises:
            RunFolderError: it contains a run already, or can't be written.
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
        """Open the folder of an improvement to continue it.

        Raises:
            RunFolderError: it contains no improvement, was made by other code, or is locked by another process.
        """
        folder = cls.read(path)
        if _about(folder.path)["code"] != code_hash():
            raise RunFolderError(
                f"{path} was made by other code than this: start anew with `lcma improve`, what it kept is in "
                f"the catalogue"
            )
        folder._lock = signed(locked(folder.path))
        for name in ("found.jsonl", "starts.jsonl"):
            drop_torn_line(folder.path / name)
        return folder

    @classmethod
    def read(cls, path: str | Path) -> ImproveFolder:
        """Open the folder of an improvement for reading, without the lock.

        Raises:
            RunFolderError: it contains no improvement, or is damaged.
        """
        about = _about(Path(path))
        with intact(Path(path) / "run.json"):
            given = about["config"]
            check_field_types(ImproveConfig, given)
            targets = tuple(given["targets"])
            config = ImproveConfig(**{**given, "targets": targets})
            if not (targets or config.closure) or not all(isinstance(name, str) for name in targets):
                raise TypeError("targets must be a list of names")
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
        """Yield the schemes of found.jsonl or starts.jsonl, each proven again; skip an incomplete last line.

        Raises:
            RunFolderError: a line can't be read, or its scheme is not valid.
        """
        for number, line in complete_lines(self.path / name):
            with intact(Path(f"{self.path / name}:{number}")):
                scheme = lcma_json.parse(line.decode())[0].scheme
                certify(scheme)
            yield scheme

    def save(self, state: ImproveState) -> None:
        """Replace the state.

        Raises:
            RunFolderError: the disk is full; the last state is unchanged.
        """
        with reported(self.path):
            write_atomic(self.path / "state.json", json.dumps(asdict(state)) + "\n")

    def state(self) -> ImproveState:
        """Return the state, empty before the end of the first turn.

        Raises:
            RunFolderError: the state is damaged.
        """
        path = self.path / "state.json"
        if not path.exists():
            return ImproveState({})
        with intact(path):
            data = loads(path.read_text())
            facts = {name: data[name] for name in ("seconds", "gained", "done")}
            check_field_types(ImproveState, facts)
            return ImproveState({str(name): int(n) for name, n in data["turns"].items()}, **facts)


def is_improvement(path: str | Path) -> bool:
    """Return whether a folder is one of an improvement; False if its run.json can't be read."""
    try:
        return KIND in loads((Path(path) / "run.json").read_text())
    except (OSError, LcmaError, UnicodeDecodeError, TypeError):
        return False


def _about(path: Path) -> dict[str, Any]:
    if not (path / "run.json").exists():
        raise RunFolderError(f"{path} holds no run: `lcma improve TARGET --out {path}` starts one")
    with intact(path / "run.json"):
        data = loads((path / "run.json").read_text())
        if data[KIND] != FORMAT:
            raise RunFolderError(f"{path} is a folder of format {data[KIND]}; this lcma knows {FORMAT}")
        return {"code": str(data["code"]), "config": data["config"]}
