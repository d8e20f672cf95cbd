"""What a run was asked to do, resolved: all that its finds depend on, and its limits."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from ..errors import PlanError
from ..schemes_db import Ring, Scheme, Target, Z, parse_ring, parse_target
from .policy import Policy
from .ternary import TernaryTerms
from .walker import Terms, pack_start, walk_policy

RINGS = ("Z2", "ZT", "Z", "Q")
"""Where a search may go: mod 2, over {-1, 0, 1} directly, or mod 2 and then lifted to Z or Q."""


@dataclass(frozen=True)
class RunConfig:
    """The settings of a run; `seconds`, `rounds` and `count` limit it, the others fix its course.

    `ring` is one of `RINGS`. `start` is None for the naive scheme. Without a `walk`
    it is the plain one over the ring, and without a `policy` the one that suits the walk.

    Raises:
        PlanError: the settings do not fit together, or nothing limits the run.
        TargetError: the target or the ring is not known.
    """

    target: str
    rank: int | None = None
    ring: str = "Z"
    seed: int = 0
    walks: int = 4
    steps: int = 1_000_000
    rounds: int | None = None
    seconds: float | None = None
    count: int = 1
    walk: str = ""
    policy: Policy | None = None
    command: str = ""
    start: Scheme | None = None

    def __post_init__(self) -> None:
        if self.ring not in RINGS:
            raise PlanError(f"a search over {parse_ring(self.ring)} is not known; choose one of {', '.join(RINGS)}")
        if self.walks < 1 or self.steps < 1 or self.count < 1:
            raise PlanError("walks, steps and count must be at least 1")
        if self.rank is None and self.rounds is None and self.seconds is None:
            raise PlanError("nothing limits the search: give a rank, rounds or seconds")
        if self.start is not None and self.start.target != self.goal:
            raise PlanError(f"the start computes {self.start.target}, not {self.target}")
        if not self.walk:
            object.__setattr__(self, "walk", "flip-zt" if self.ring == "ZT" else "flip")
        if self.ring == "ZT" and not isinstance(self.terms, TernaryTerms):
            raise PlanError(f"walk {self.walk!r} does not stay in -1, 0, 1: take flip-zt, or ring Z")
        rank = self.start_rank
        if self.rank is not None and rank <= self.rank:
            raise PlanError(f"the start has rank {rank} already: ask for less than that")

    @property
    def goal(self) -> Target:
        return parse_target(self.target)

    @property
    def over(self) -> Ring:
        """The ring of the finds."""
        return Z if self.ring == "ZT" else parse_ring(self.ring)

    @cached_property
    def terms(self) -> Terms:
        """Where the walks start."""
        return pack_start(self.walk, self.goal, self.start)

    @property
    def start_rank(self) -> int:
        return self.terms.rank

    @property
    def patience(self) -> Policy:
        """The policy of the walks."""
        return self.policy or walk_policy(self.walk)

    @property
    def call(self) -> str:
        """How to run this again: the command, or a call of `find`."""
        return self.command or (
            f"find({self.target!r}, rank={self.rank}, ring={self.ring!r}, seed={self.seed}, "
            f"walks={self.walks}, steps={self.steps})"
        )

    def limited(self, rounds: int | None, seconds: float | None, count: int) -> RunConfig:
        """The same course with other limits."""
        return replace(self, rounds=rounds, seconds=seconds, count=count)

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON values, without the start."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "start"}
        return {**values, "policy": self.patience._asdict()}

    @classmethod
    def from_json(cls, data: dict[str, Any], start: Scheme | None) -> RunConfig:
        """The inverse of `to_json`.

        Raises:
            PlanError: an unknown or a missing setting.
        """
        try:
            return cls(**{**data, "policy": Policy(**data["policy"])}, start=start)
        except (TypeError, KeyError, AttributeError) as error:
            raise PlanError(f"these are no settings of a run: {error}") from None
