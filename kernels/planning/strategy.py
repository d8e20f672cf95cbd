"""The data types of planning: stages, candidates, strategies, executors, plans, and the registry of strategies."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ...errors import PlanError
from ...schemes_db.display import line, table
from ...schemes_db.program import Program
from ..request import Request
from .cache import plan_cache
from .wisdom import CandidateKey, Parameters

if TYPE_CHECKING:
    from .machine import Machine

Operand = Any
"""A numpy array on the CPU, a torch tensor on a GPU."""


@dataclass(frozen=True)
class Stage:
    """A predicted part of a run: arithmetic operations, bytes read and written, seconds if known (NaN becomes None).

    `product` is (m, k, n) of one product of a stage of products, None for a stage of sums. `level` is
    the label of the level that the stage belongs to.
    """

    name: str
    flops: float
    bytes: float
    seconds: float | None = None
    product: tuple[int, int, int] | None = None
    level: str = ""

    def __post_init__(self) -> None:
        if self.seconds is not None:
            object.__setattr__(self, "seconds", None if math.isnan(self.seconds) else float(self.seconds))

    @property
    def intensity(self) -> float:
        """Operations per byte; 0 if no bytes move."""
        return self.flops / self.bytes if self.bytes else 0.0


class Executor(Protocol):
    """Runs one plan. Thread-safe; the same plan on the same input gives the same bits."""

    @property
    def workspace(self) -> int:
        """Bytes allocated beside the operands and the result during one run."""

    def run(self, a: Operand, b: Operand, out: Operand | None = None) -> Operand:
        """Compute C = A B in `out`, which may overlap the operands, or in a new array.

        Raises:
            PlanError: the operands do not match the plan's request, or `check_out` refuses `out`.
        """


@dataclass(frozen=True)
class PreparedOperand:
    """B (k x n, an array or a tensor) with the sums of an executor's `prepare`, to pass to `run` instead of b.

    It is valid for every executor of the same program, method, k, n, dtype and layout of B, for any m. `sums` are the
    data that the device's level executor reads instead of B.
    """

    b: Any
    sums: Any
    nbytes: int


class Source(Protocol):
    """The origin of a candidate's program. Compared and hashed by `key`; the program is built on first access."""

    @property
    def key(self) -> str:
        """A text that identifies the program permanently: digests and orders of its schemes."""

    @property
    def label(self) -> str:
        """Formats and ranks by level."""

    @property
    def program(self) -> Program: ...


@dataclass(frozen=True)
class Candidate:
    """A strategy with its arguments for a request: the source of a program or None, and parameters.

    `family` and `strategy` name the strategy within the registry of the request's device.
    """

    family: str
    strategy: str
    source: Source | None = field(default=None, compare=False)
    parameters: Parameters = ()

    @property
    def label(self) -> str:
        """Formats and ranks by level, or the strategy's name."""
        return self.strategy if self.source is None else self.source.label

    @property
    def method(self) -> str:
        """The method of executing a level, or "" for a strategy without levels."""
        return str(dict(self.parameters).get("method", ""))

    @property
    def program(self) -> Program | None:
        """The program that the strategy runs; None for a strategy without one."""
        return None if self.source is None else self.source.program

    @property
    def own_program(self) -> Program:
        """The program of a candidate that has a source, as all of a strategy of schemes have."""
        assert self.source is not None
        return self.source.program

    @cached_property
    def key(self) -> CandidateKey:
        """The identity of the candidate, also in files."""
        return self.family, self.strategy, "" if self.source is None else self.source.key, self.parameters

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidate) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return line(f"candidate {self}")

    def __str__(self) -> str:
        if self.source is None:
            return self.strategy + "".join(f", {name} {value}" for name, value in self.parameters if name != "method")
        return f"{self.strategy} {self.source.label}" + (f", {self.method}" if self.method else "")


@dataclass(frozen=True)
class Proposal:
    """A candidate that a strategy proposes, and a lower bound of its predicted seconds (NaN: unknown)."""

    bound: float
    candidate: Candidate


@dataclass(frozen=True)
class Strategy(ABC):
    """An algorithm for the requests of one family on one device; the methods are those of one without programs.

    `baseline` marks the strategy of a family that all others are compared with. Strategies that run programs override
    `source_kinds` and `source_of`; `methods` are those by which they do ("": by one only). In subclasses a method
    without a docstring is that of this class.
    """

    methods: ClassVar[tuple[str, ...]] = ("",)

    name: str
    family: str
    baseline: bool = False
    device: str = "cuda"

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        """Return the candidates that may be worth running, in any order, or the reason why there are none.

        A bound never exceeds the seconds that `predict` returns: here that of the only candidate is 0. A strategy that
        is not for requests of this kind proposes nothing.
        """
        return [Proposal(0.0, Candidate(self.family, self.name))]

    def candidate(self, source: Source | None = None, method: str = "") -> Candidate:
        """Return the candidate that runs a source by a method ("": none); None: that without a program."""
        return Candidate(self.family, self.name, source, (("method", method),) if method else ())

    @property
    def source_kinds(self) -> tuple[type[Any], ...]:
        """The classes of the sources that the strategy runs."""
        return ()

    def source_of(self, key: str, request: Request) -> Source | None:
        """Return the source with this key; None if it no longer exists, or the strategy runs no programs."""
        return None

    def candidates_of(self, source: Source) -> Iterable[Candidate]:
        """Return the candidates that run a given program, one for every setting of the parameters; may be none."""
        return (self.candidate(source, method) for method in self.methods if isinstance(source, self.source_kinds))

    def restore(self, key: str, parameters: Parameters, request: Request) -> Candidate | None:
        """Return the candidate with this source key and these parameters; None if the source no longer exists."""
        source = self.source_of(key, request) if key else None
        if source is None and (key or self.source_kinds):
            return None
        return Candidate(self.family, self.name, source, parameters)

    @abstractmethod
    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """Return None, or the reason why it cannot run, as a line for the user."""

    @abstractmethod
    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """Return the stages of one run that is not empty; their seconds add up to the candidate's predicted time."""

    @abstractmethod
    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """Return the bytes that one run allocates: exact, or an upper bound if the strategy documents it."""

    @abstractmethod
    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """Return the executor of a candidate, compiled; may take seconds the first time."""

    def proposal(self, candidate: Candidate, request: Request, machine: Machine) -> Proposal:
        """Return the proposal of a candidate whose bound is its price, less an error of rounding; NaN if unknown."""
        stages = self.predict(candidate, request, machine)
        price = sum(math.nan if stage.seconds is None else stage.seconds for stage in stages)
        return Proposal(price * (1 - 1e-9), candidate)


_registered: dict[tuple[str, str, str], Strategy] = {}
NEEDED = (
    *("device", "family", "name", "baseline"),
    *("propose", "candidates_of", "restore", "can_run", "predict", "workspace", "build"),
)
"""What the planner asks of a strategy."""


def register_strategy(strategy: Strategy) -> None:
    """Register a strategy with the planner, replacing one of the same device, family and name.

    An object of another class will do, if it has the attributes NEEDED.
    """
    if not all(hasattr(strategy, name) for name in NEEDED):
        *most, last = NEEDED
        raise PlanError(f"{type(strategy).__name__} is not a strategy: it needs {', '.join(most)} and {last}")
    _registered[strategy.device, strategy.family, strategy.name] = strategy
    plan_cache.clear()


def unregister_strategy(strategy: Strategy) -> None:
    """Undo `register_strategy`; a strategy of this package with the same name is restored."""
    _registered.pop((strategy.device, strategy.family, strategy.name), None)
    plan_cache.clear()


def registered(device: str) -> Mapping[tuple[str, str], Strategy]:
    """Return the registered strategies of a device by family and name."""
    return {(family, name): strategy for (where, family, name), strategy in _registered.items() if where == device}


@dataclass(frozen=True)
class Plan:
    """A candidate for a request: its predicted stages and workspace. `build` creates the executor that runs it."""

    request: Request
    candidate: Candidate
    strategy: Strategy = field(compare=False, repr=False)
    machine: Machine = field(compare=False, repr=False)
    stages: tuple[Stage, ...]
    workspace: int

    @classmethod
    def of(cls, strategy: Strategy, candidate: Candidate, request: Request, machine: Machine, workspace: int) -> Plan:
        """Return the plan of a candidate; an empty product has no stages."""
        stages = () if request.is_empty else tuple(strategy.predict(candidate, request, machine))
        return cls(request, candidate, strategy, machine, stages, workspace)

    @cached_property
    def seconds(self) -> float | None:
        """Predicted seconds of one run, or None if those of a stage are unknown."""
        times = [stage.seconds for stage in self.stages]
        known = [time for time in times if time is not None]
        return sum(known) if len(known) == len(times) else None

    @property
    def label(self) -> str:
        return self.candidate.label

    @property
    def library(self) -> str:
        """The library whose own product this plan is, "vendor" if it has no other name; "" for any other plan."""
        vendors = self.candidate.strategy == "vendor" and not self.workspace
        return str(dict(self.candidate.parameters).get("library", "vendor")) if vendors else ""

    def for_request(self, request: Request) -> Plan:
        """Return the plan of the same candidate for another request of its class.

        Raises:
            PlanError: the strategy cannot run it.
        """
        if request == self.request:
            return self
        if reason := self.strategy.can_run(self.candidate, request, self.machine):
            raise PlanError(f"{request} cannot be run by {self.candidate}: {reason}")
        workspace = self.strategy.workspace(self.candidate, request, self.machine)
        return Plan.of(self.strategy, self.candidate, request, self.machine, workspace)

    def build(self) -> Executor:
        """Build the executor of this plan."""
        return self.strategy.build(self.candidate, self.request, self.machine)

    @cached_property
    def executor(self) -> Executor:
        """The executor of this plan, built once."""
        return self.build()

    def run(self, a: Any, b: Any, out: Any = None) -> Any:
        """Compute a b by this plan, in `out` or in a new array or tensor.

        Raises:
            PlanError: the operands do not match the request.
        """
        return self.executor.run(a, b, out)

    def __repr__(self) -> str:
        return line(self._title)

    def _repr_html_(self) -> str:
        """The predicted stages as a table, for a notebook."""
        times = ["unknown" if one.seconds is None else f"{one.seconds:.3g}" for one in self.stages]
        rows = [
            (one.level, one.name, f"{one.flops:.3g}", f"{one.bytes:.3g}", time)
            for one, time in zip(self.stages, times, strict=True)
        ]
        return table(self._title, ("level", "stage", "operations", "bytes", "predicted seconds"), rows)

    @property
    def _title(self) -> str:
        return f"plan {self.request} by {self.candidate}, workspace {self.workspace} bytes"
