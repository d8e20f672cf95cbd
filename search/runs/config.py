"""Resolved settings of a run: everything that its finds depend on, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

from ...errors import LcmaError, PlanError, unknown_name
from ...schemes_db import Ring, Scheme, Target, Z, parse_ring, parse_target
from ..cluster.connection import Cluster, cluster_at
from ..cluster.engine import engine_on
from ..flipgraph.policy import POLICY_FIELDS, Policy, Selection
from ..flipgraph.walkers import WalkTerms, pack_start, walk_policy
from ..groups.product_rank import by_products
from ..terms.ternary import TermsModulo3, TernaryTerms
from ..triples.annealer import usual_rank
from .bounds import BOUNDS, HALF_BOUNDS, broken, has_halves, refuse_bounds
from .engine import Engine
from .locked_folder import check_field_types
from .objectives import HALF_OBJECTIVES, refuse_objective
from .plan import EASY_SIDE, FormatStage, LadderPlan, Setting, corners_below, formats_below, parse_stage

RINGS = {"Z2": "flip", "Z3": "flip-z3", "ZT": "flip-zt", "Z": "flip", "Q": "flip"}
"""The rings of a search and their default walks: mod 2 (lifted to Z or Q), mod 3, or over {-1, 0, 1} directly."""

METHODS = ("walks", "triples", "least-squares")
"""The methods of a run: walks to lower ranks, annealing of Strassen triples for formats with a side of 2
(`triples`), or numerical optimisation (`least-squares`)."""

TRIPLE_WALKS, TRIPLE_STEPS = 4, 50_000
"""Number of annealings of a round of `triples`, and their steps."""

CHAINS_OF_CPU, CHAINS, CHAIN_STEPS = 4, 256, 100
"""Number of chains of a round of `least-squares` on a processor and on a GPU, and their steps."""

MAX_WALKS_OF_CPU, MAX_WALKS, MAX_STEPS = 1 << 20, 1 << 24, 1 << 36
"""Maximum numbers of walks of a round and of steps of a walk: a round is never interrupted within hours beyond."""

GROUP_WALKS, GROUP_STEPS = 6, 2_000_000
"""Number of walks of a round for groups, and their steps of cooling."""

LADDER_WALKS = ("flip", "flip-half", "flip-zt")
"""The walks that go through smaller formats on a GPU, even if they are named."""

SYMMETRIC_WALK = "flip-c3"
"""The walk for square formats that are too large for the default ones."""


@dataclass(frozen=True)
class RunConfig:
    """The settings of a run; `seconds`, `rounds` and `count` limit it, the others determine its finds.

    `rank` is the rank wanted, and the run ends after the round in which it has `count` finds. `policy` is the
    policy of the walks, or some of its fields: {"full": 22}. `device` is one of `device_names()`, for GPUs
    optionally with their numbers: cuda:0,1.

    `ring` is one of `RINGS`. `start` is None for the naive scheme. The default `walk` is the one of the ring in
    `RINGS`; the symmetric one for a square format beyond 4x4x4 if neither start nor ladder nor bounds are given;
    and the one that favours half products with bounds on full products. Where `walks` or `steps` is 0, and for
    fields that `policy` omits, the values of `settings` for the target and the walk apply.

    `ladder` lists the formats before the target, the first that of the start, as `MxKxN:RANK` or `MxKxN`; None
    means the formats from that of the start to the target, or `formats_below` the target if neither a start nor a
    walk is given. `objective` selects finds among the schemes of the rank wanted: all, or each that is better
    than those before. `plan` is that of the ladder, by default the device's. `method` is one of `METHODS`.
    With `naive_too` walks start in rotation from `start` and from the naive scheme.

    With an `address` (local, auto, HOST:PORT) the walks run on `workers` workers of a Ray cluster, each with its
    own `device`; 0 means one a core, or one a GPU.

    Raises:
        PlanError: the settings are inconsistent, or nothing limits the run.
        TargetError: the target or the ring is not known.
    """

    target: str
    rank: int | None = None
    ring: str = "Z"
    seed: int = 0
    walks: int = 0
    steps: int = 0
    rounds: int | None = None
    seconds: float | None = None
    count: int = 1
    walk: str = ""
    policy: Policy | Mapping[str, float | str] | None = None
    command: str = ""
    start: Scheme | None = None
    ladder: tuple[str, ...] | None = None
    plan: LadderPlan | None = None
    device: str = "cpu"
    objective: str = "rank"
    method: str = "walks"
    naive_too: bool = False
    address: str = ""
    workers: int = 0

    def __post_init__(self) -> None:
        cluster_at(self.address, self.workers)  # rejects an address of another form, and workers without one
        if self.ring not in RINGS:
            raise PlanError(f"a search over {parse_ring(self.ring)} is not known; choose one of {', '.join(RINGS)}")
        if self.walks < 0 or self.steps < 0 or self.count < 1:
            raise PlanError("walks and steps can't be negative (0: what suits the target), count must be at least 1")
        if self.rank is None and self.rounds is None and self.seconds is None:
            raise PlanError("nothing limits the search: give a rank, rounds or seconds")
        most = MAX_WALKS_OF_CPU if self.device == "cpu" else MAX_WALKS
        if self.walks > most or self.steps > MAX_STEPS:
            raise PlanError(f"a round has at most {most} walks of {MAX_STEPS} steps; ask for more rounds")
        if self.method not in METHODS:
            raise unknown_name("method", self.method, METHODS)
        if self.method == "triples":
            self._be_triples()
        if self.method == "least-squares":
            self._be_least_squares()
        refuse_objective(self.objective)
        if by_products(self.objective):
            self._be_groups()
        if self.objective != "rank" and self.rounds is None and self.seconds is None:
            raise PlanError(f"nothing limits a search for better {self.objective}: give rounds or seconds")
        if not len(self.final_target.terms):
            raise PlanError(f"{self.final_target} wants nothing: there is no product to save")
        anywhere = not self.walk and self.start is None and self.ladder is None and not self._named & BOUNDS
        m, k, n = self.final_target.shape
        if anywhere and RINGS[self.ring] == "flip" and self.final_target.is_general and EASY_SIDE < m == k == n <= 8:
            self._fix(walk=SYMMETRIC_WALK)
        if self.ladder is None:
            self._fix(ladder=self._natural_ladder())
        if not self.walk:
            self._fix(walk=self._plain_walk())
        if self.ladder:
            pack_start(self.walk, self.final_target)  # rejects a target that does not fit before the run
        own = self._settings[-1]
        self._fix(walks=self.walks or own.walkers)
        if self.method == "least-squares" or not self.engine.by_format:
            self._fix(steps=self.steps or own.steps)
        first = self.stages[0].target
        if self.start is not None and self.start.target != first:
            raise PlanError(f"the start computes {self.start.target}, not {first}")
        if self.naive_too and (self.start is None or self.ladder or self.method != "walks"):
            raise PlanError("naive_too is for walks from a start of the target: name one, and no ladder")
        has_start = self.method == "walks"
        if has_start:
            self._check_terms()
        within_bounds = not has_start or not broken(self.terms, self.target_policy)
        if not self.ladder and self.rank is not None and self.start_rank <= self.rank and within_bounds:
            raise PlanError(f"the start has rank {self.start_rank} already: ask for less than that")

    def _check_terms(self) -> None:
        """Raise a PlanError if the walks do not lead to the ring from the start, or bounds do not fit it."""
        if self.ring == "ZT" and not isinstance(self.terms, TernaryTerms):
            raise PlanError(f"walk {self.walk!r} does not stay in -1, 0, 1: take flip-zt, or ring Z")
        if isinstance(self.terms, TermsModulo3) and self.ring not in ("Z3", "Z", "Q"):
            raise PlanError(f"walk {self.walk!r} does not lead to {self.ring}, but to Z3 and by lifts to Z and Q")
        if self.ring == "Z3" and not isinstance(self.terms, TermsModulo3):
            raise PlanError(f"walk {self.walk!r} does not lead to Z3: only flip-z3 does")
        refuse_bounds(self.target_policy, self.walk, self.terms, self.output_ring, self.ladder or ())

    def _fix(self, **values: Any) -> None:
        """Set fields that follow from others."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _be_triples(self) -> None:
        """Set the fields that a search by triples determines; raise a PlanError if they are set otherwise."""
        usual_rank(self.final_target)  # rejects a target that does not fit before the run
        if self.ring not in ("Z", "Z2") or self.address:
            raise PlanError("a search by triples is over Z or Z2, on this machine: leave other rings and clusters out")
        if self.policy or self.walk not in ("", "flip") or self.ladder or self.start is not None:
            raise PlanError("a search by triples has neither walks nor starts: leave walk, start and bounds out")
        self._fix(walk="flip", ladder=())

    def _be_groups(self) -> None:
        """Set the fields that a search for groups determines; raise a PlanError if they are set otherwise."""
        if self.ring not in ("Z", "ZT") or self.walk not in ("", "flip-zt") or self.ladder or self.address:
            raise PlanError("a search for groups is over Z, from a ternary start of its target, on this machine")
        if self.method != "walks" or self.rank is not None:
            raise PlanError("a search for groups has walks of its own: leave method and rank out")
        self._fix(walk="flip-zt", ladder=())

    def _be_least_squares(self) -> None:
        """Set the fields that least squares determine; raise a PlanError if they are set otherwise."""
        if not self.final_target.is_general or self.rank is None:
            raise PlanError(f"least squares need a full product, here {self.final_target}, and a rank that is wanted")
        if self.ring not in ("Z", "Q") or self.address:
            raise PlanError("least squares are over Z or Q, on this machine: leave other rings and clusters out")
        if self.policy or self.walk not in ("", "flip") or self.ladder:
            raise PlanError("least squares have no walks: leave walk, ladder and bounds out")
        if self.start is not None and self.start.rank <= self.rank:
            raise PlanError(f"the start has rank {self.start.rank} already: ask for less than that")
        self._fix(walk="flip", ladder=())

    @property
    def _named(self) -> frozenset[str]:
        """The policy fields that are given individually."""
        return frozenset(self.policy) if isinstance(self.policy, Mapping) else frozenset()

    @property
    def engine(self) -> Engine:
        """The engine that runs the walks.

        Raises:
            PlanError: the device is unknown.
        """
        return engine_on(self.device, self.cluster)[0]

    @property
    def cluster(self) -> Cluster | None:
        """The cluster that runs the workers, None for this process; see `cluster_at`."""
        return cluster_at(self.address, self.workers)

    @cached_property
    def _settings(self) -> tuple[Setting, ...]:
        """Default settings for every format of the run and the walk."""
        chains = CHAINS_OF_CPU if self.device == "cpu" else CHAINS
        own = {"triples": (TRIPLE_WALKS, TRIPLE_STEPS), "least-squares": (chains, CHAIN_STEPS)}
        if by_products(self.objective):
            own["walks"] = (GROUP_WALKS, GROUP_STEPS)
        if self.method in own:
            walkers, steps = own[self.method]
            return (Setting(walkers=walkers, steps=steps, policy=walk_policy(self.walk)),)
        engine = self.engine
        return tuple(
            engine.setting(stage.target if engine.by_format else self.final_target, self.walk) for stage in self.stages
        )

    def setting(self, stage: int) -> Setting:
        """Return the settings of the walks of a format, `stage` counted from 0.

        Raises:
            PlanError: a field that a policy does not have.
        """
        own, last = self._settings[stage], stage == len(self.stages) - 1
        if isinstance(self.policy, Policy):
            policy = self.policy
        else:
            if unknown := self._named - set(POLICY_FIELDS):
                raise PlanError(f"a policy has no {', '.join(sorted(unknown))}; choose from {', '.join(POLICY_FIELDS)}")
            given: dict[str, Any] = {
                name: value for name, value in (self.policy or {}).items() if last or name != "full"
            }
            policy = replace(own.policy, **given)
        full = self.stages[stage].full
        if not last and full is not None and policy.cost == "full":
            policy = replace(policy, full=full)
        return Setting(
            walkers=self.walks or own.walkers, steps=self.steps or own.steps, policy=policy, plan=self.plan or own.plan
        )

    def _plain_walk(self) -> str:
        """Return the default walk for the ring, the one that favours half products if they are counted."""
        counted = self.objective in HALF_OBJECTIVES or bool(self._named & HALF_BOUNDS) or self.engine.by_format
        favoured = counted and RINGS[self.ring] == "flip" and has_halves(self.final_target)
        return "flip-half" if favoured else RINGS[self.ring]

    def _natural_ladder(self) -> tuple[str, ...]:
        """Return the default ladder: formats from that of the start to the target; without a start those below it."""
        below = formats_below(self.final_target)
        if self.start is None:
            if not self.engine.by_format:
                return () if self.walk else below
            if self.walk and self.walk not in LADDER_WALKS:
                return ()
            return below or corners_below(self.final_target, self.output_ring)
        first = self.start.target
        if first == self.final_target or not (first.is_general and self.final_target.is_general):
            return ()
        between = below[below.index(first.name) + 1 :] if first.name in below else ()
        return (f"{first}:{self.start.rank}", *between)

    @property
    def final_target(self) -> Target:
        return parse_target(self.target)

    @property
    def output_ring(self) -> Ring:
        return Z if self.ring == "ZT" else parse_ring(self.ring)

    @cached_property
    def stages(self) -> tuple[FormatStage, ...]:
        """Formats of the run in order, the target last."""
        steps = (parse_stage(text, self.output_ring) for text in self.ladder or ())
        return (*steps, FormatStage(self.final_target, self.rank))

    @cached_property
    def terms(self) -> WalkTerms:
        return pack_start(self.walk, self.stages[0].target, self.start)

    @cached_property
    def starts(self) -> tuple[WalkTerms, ...]:
        """All starts of the walks: `terms`, and the naive scheme with `naive_too`."""
        return (self.terms, pack_start(self.walk, self.final_target)) if self.naive_too else (self.terms,)

    @property
    def start_rank(self) -> int:
        """Rank that the run starts from: without walks there is no start, and the naive scheme is to be beaten."""
        return self.terms.rank if self.method == "walks" else len(self.final_target.terms)

    @property
    def target_policy(self) -> Policy:
        """Policy of the walks for the target."""
        return self.setting(len(self.stages) - 1).policy

    @property
    def call(self) -> str:
        """The command or the call of `find` that repeats the run."""
        if self.command:
            return self.command
        names = ("rank", "ring", "seed", "walks", "steps", "walk", "ladder", "objective", "method")
        rest = ("policy", "device", "address", "workers", "plan", "naive_too")
        defaults = {item.name: item.default for item in fields(self)}
        given = [name for name in rest if getattr(self, name) not in (defaults[name], {})]
        settings = [f"{name}={getattr(self, name)!r}" for name in (*names, *given)]
        if self.start is not None:
            settings.append(f"start=resolve({self.start.digest[:16]!r})[0]")
        return f"find({self.target!r}, {', '.join(settings)})"

    def to_json(self) -> dict[str, Any]:
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "start"}
        policy = asdict(self.policy) if isinstance(self.policy, Policy) else dict(self.policy or {})
        plan = self.plan._asdict() if self.plan else None
        # For information: they follow from the other settings.
        own = [(stage, self.setting(number)) for number, stage in enumerate(self.stages)]
        resolved = [{"stage": str(stage), **asdict(one), "plan": one.plan._asdict()} for stage, one in own]
        target = self.final_target.name  # that of a mask or tensor file has all of it
        return {**values, "target": target, "policy": policy, "plan": plan, "resolved": resolved}

    @classmethod
    def from_json(cls, data: dict[str, Any], start: Scheme | None) -> RunConfig:
        """Invert `to_json`.

        Raises:
            PlanError: an unknown or a missing setting.
            TargetError: the target is not known, or names a file: nothing in a folder opens another one.
        """
        try:
            policy = dict(data["policy"])
            check_field_types(cls, data)
            parse_target(data["target"], files=False)
            check_field_types(Policy, policy)
            check_field_types(LadderPlan, data["plan"] or {})
            if "selection" in policy:
                policy["selection"] = Selection(*policy["selection"])
                check_field_types(Selection, policy["selection"]._asdict())
            plan = LadderPlan(**data["plan"]) if data["plan"] else None
            given = {name: value for name, value in data.items() if name != "resolved"}
            return cls(**{**given, "policy": policy, "plan": plan, "ladder": tuple(data["ladder"])}, start=start)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            if isinstance(error, LcmaError):
                raise
            raise PlanError(f"these are no settings of a run: {error}") from None
