"""Folder of an improvement: its settings, finds, starts and state.

run.json      the settings and the hash of the code, written once
found.jsonl   one line a scheme that was stored in the catalogue, synced at once
starts.jsonl  one line a scheme that turns start from in addition to those of the catalogue
state.json    turns and seconds so far, replaced atomically after every turn
lock          locked by the process that writes here
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...errors import LcmaError
from ...home import write_atomic
from ...schemes_db import Scheme, parse_target
from ...schemes_db.formats import lcma_json
from ...schemes_db.formats.strict_json import loads
from ...verify import certify
from ..cluster.connection import Cluster, cluster_at
from ..runs.locked_folder import LockedFolder, check_field_types, intact, reported


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
        """The cluster that runs the workers, None for this process; see `cluster_at`."""
        return cluster_at(self.address, self.workers)


@dataclass(frozen=True)
class ImproveState:
    """State of an improvement: the turns of every target, the seconds, the gain, and whether it is complete."""

    turns: dict[str, int]
    seconds: float = 0.0
    gained: int = 0
    done: bool = False


class ImproveFolder(LockedFolder[ImproveConfig]):
    """An open folder of an improvement."""

    KIND, FORMAT, COMMAND, LINES = "lcma_improve", 1, "lcma improve", ("found.jsonl", "starts.jsonl")
    OTHERWISE = "start anew with `lcma improve`, what it kept is in the catalogue"

    def _about(self) -> dict[str, Any]:
        return {"config": asdict(self.config)}

    @classmethod
    def _config_of(cls, path: Path, data: Any) -> ImproveConfig:
        check_field_types(ImproveConfig, data)
        if not (data["targets"] or data.get("closure")) or not all(isinstance(name, str) for name in data["targets"]):
            raise TypeError("targets must be a list of names")
        targets = (parse_target(name, files=False).name for name in data["targets"])  # a folder opens no other file
        return ImproveConfig(**{**data, "targets": tuple(targets)})

    def append(self, name: str, scheme: Scheme) -> None:
        """Add a scheme to one of the `LINES`; see `append_lines`."""
        self.append_lines(name, [json.dumps(lcma_json.to_json(scheme)) + "\n"])

    def schemes(self, name: str) -> Iterator[Scheme]:
        """Yield the schemes of one of the `LINES`, each proven again; see `parsed_lines`."""
        return self.parsed_lines(name, _proven)

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
        return ImproveFolder.KIND in loads((Path(path) / "run.json").read_text())
    except (OSError, LcmaError, UnicodeDecodeError, TypeError):
        return False


def _proven(line: str) -> Scheme:
    scheme = lcma_json.parse(line)[0].scheme
    certify(scheme)
    return scheme
