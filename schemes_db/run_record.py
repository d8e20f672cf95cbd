"""Records of searches, successful or not: rows of the catalogue's table `runs`."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..version import __version__


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """A run, or a turn of an improvement.

    Attributes:
        device: "cpu" or "cuda", of the walks.
        route: from where a turn of an improvement began, "" for other runs.
        policy: by which variant of the format's policy.
        start: the lowest rank that the route itself began at.
        rank: the lowest rank at hand before.
        reached: the lowest rank that walks came to.
        finds: schemes that were handed over.
    """

    command: str
    target: str
    ring: str
    seed: int | None = None
    rounds: int = 0
    flips: int = 0
    seconds: float = 0.0
    finds: int = 0
    version: str = __version__
    started: str = ""
    device: str = ""
    route: str = ""
    policy: str = ""
    start: int = 0
    rank: int = 0
    reached: int = 0


COLUMNS = tuple(field.name for field in fields(RunRecord))
