"""What a run was asked to do, resolved: all that its finds depend on, and its limits."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from ..errors import PlanError
from ..schemes_db import Ring, Scheme, Target, Z, parse_ring, parse_target
from .chain import EASY_SIDE, Stage, formats_below, parse_stage
from .objectives import HALF_OBJECTIVES, objective_names
from .policy import Policy
from .strategy import ALONE, PoolPlan
from .ternary import TermsModulo3, TernaryTerms
from .walker import Terms, pack_start, walk_policy

RINGS = {"Z2": "flip", "Z3": "flip-z3", "ZT": "flip-zt", "Z": "flip", "Q": "flip"}
"""Where a search may go, and the plain walk: mod 2 (lifted to Z or Q), mod 3, or over {-1, 0, 1} directly."""

SYMMETRIC_WALK = "flip-c3"
"""The walk for square formats that are out of reach of the plain ones."""


@dataclass(frozen=True)
class RunConfig:
    """The settings of a run; `seconds`, `rounds` and `count` limit it, the others fix its course.

    `ring` is one of `RINGS`. `start` is None for the naive scheme. Without a `walk` it is the plain
    one over the ring, but the symmetric one for a square format beyond 4x4x4 where neither start nor
    ladder is given. Without a `policy` it is the one that suits the walk.

    `ladder` names the formats to go through before the target, the first from the start, as
    `MxKxN:RANK` or `MxKxN`; None is the way from the format of the start, or `formats_below` the
    target where walks have neither a start nor a kind of their own. `objective` says which schemes
    of the rank wanted are finds: all, or each that is better than those before. Without a `pool` plan walks go alone.

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
    ladder: tuple[str, ...] | None = None
    pool: PoolPlan | None = None
    device: str = "cpu"
    objective: str = "rank"

    def __post_init__(self) -> None:
        if self.ring not in RINGS:
            raise PlanError(f"a search over {parse_ring(self.ring)} is not known; choose one of {', '.join(RINGS)}")
        if self.walks < 1 or self.steps < 1 or self.count < 1:
            raise PlanError("walks, steps and count must be at least 1")
        if self.rank is None and self.rounds is None and self.seconds is None:
            raise PlanError("nothing limits the search: give a rank, rounds or seconds")
        if self.objective not in objective_names():
            raise PlanError(f"objective {self.objective!r} is not known; choose one of {', '.join(objective_names())}")
        if self.objective != "rank" and self.rounds is None and self.seconds is None:
            raise PlanError(f"nothing limits a search for better {self.objective}: give rounds or seconds")
        anywhere = not self.walk and self.start is None and self.ladder is None
        if anywhere and RINGS[self.ring] == "flip" and _cyclic(self.goal):
            object.__setattr__(self, "walk", SYMMETRIC_WALK)
        if self.ladder is None:
            object.__setattr__(self, "ladder", self._natural_ladder())
        if not self.walk:
            object.__setattr__(self, "walk", self._plain_walk())
        if self.ladder:
            pack_start(self.walk, self.goal)  # a target that does not fit is refused now
        first = self.stages[0].target
        if self.start is not None and self.start.target != first:
            raise PlanError(f"the start computes {self.start.target}, not {first}")
        if self.ring == "ZT" and not isinstance(self.terms, TernaryTerms):
            raise PlanError(f"walk {self.walk!r} does not stay in -1, 0, 1: take flip-zt, or ring Z")
        if (self.ring == "Z3") != isinstance(self.terms, TermsModulo3):
            raise PlanError(
                f"walk {self.walk!r} does not lead to {self.ring}: only flip-z3 leads to Z3, and only there"
            )
        rank = self.start_rank
        if not self.ladder and self.rank is not None and rank <= self.rank:
            raise PlanError(f"the start has rank {rank} already: ask for less than that")

    def _plain_walk(self) -> str:
        """The walk for the ring, in favour of half products where they are what counts."""
        favoured = self.objective in HALF_OBJECTIVES and RINGS[self.ring] == "flip" and not self.goal.is_general
        return "flip-half" if favoured else RINGS[self.ring]

    def _natural_ladder(self) -> tuple[str, ...]:
        """The formats from that of the start to the target; without start and kind of walk those below the target."""
        below = formats_below(self.goal)
        if self.start is None:
            return () if self.walk else below
        first = self.start.target
        if first == self.goal or not (first.is_general and self.goal.is_general):
            return ()
        between = below[below.index(first.name) + 1 :] if first.name in below else ()
        return (f"{first}:{self.start.rank}", *between)

    @property
    def goal(self) -> Target:
        return parse_target(self.target)

    @property
    def over(self) -> Ring:
        """The ring of the finds."""
        return Z if self.ring == "ZT" else parse_ring(self.ring)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The formats that the run goes through, the target last."""
        steps = (parse_stage(text, self.over) for text in self.ladder or ())
        return (*steps, Stage(self.goal, self.rank))

    @property
    def plan(self) -> PoolPlan:
        """How schemes are gathered."""
        return self.pool or ALONE

    @cached_property
    def terms(self) -> Terms:
        """Where the walks start."""
        return pack_start(self.walk, self.stages[0].target, self.start)

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
        if self.command:
            return self.command
        names = ("rank", "ring", "seed", "walks", "steps", "walk", "ladder", "objective")
        settings = [f"{name}={getattr(self, name)!r}" for name in names]
        settings += [f"{name}={value!r}" for name, value in (("policy", self.policy), ("pool", self.pool)) if value]
        if self.start is not None:
            settings.append(f"start=resolve({self.start.digest[:16]!r})[0]")
        return f"find({self.target!r}, {', '.join(settings)})"

    def limited(self, rounds: int | None, seconds: float | None, count: int) -> RunConfig:
        """The same course with other limits."""
        return replace(self, rounds=rounds, seconds=seconds, count=count)

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON values, without the start."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "start"}
        return {**values, "policy": self.patience._asdict(), "pool": self.plan._asdict()}

    @classmethod
    def from_json(cls, data: dict[str, Any], start: Scheme | None) -> RunConfig:
        """The inverse of `to_json`.

        Raises:
            PlanError: an unknown or a missing setting.
        """
        try:
            parts = {
                "policy": Policy(**data["policy"]),
                "pool": PoolPlan(**data["pool"]),
                "ladder": tuple(data["ladder"]),
            }
            return cls(**{**data, **parts}, start=start)
        except (TypeError, KeyError, AttributeError) as error:
            raise PlanError(f"these are no settings of a run: {error}") from None


def _cyclic(target: Target) -> bool:
    """Whether a symmetric walk suits a target: a square full product whose sides are beyond the easy ones."""
    return target.is_general and EASY_SIDE < target.m == target.k == target.n <= 8
