"""The nouns of planning: strategies, their predicted stages, candidates, plans and executors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.program import Program
from ..cpu.workspace import Pool
from ..request import OperandKind, Request
from .profile import Profile

Matrix = npt.NDArray[Any]


@dataclass(frozen=True)
class Stage:
    """A predicted part of a run: arithmetic operations, bytes read and written, seconds where they are known.

    `product` is (m, k, n) of one product of a stage of products, None for a stage of sums.
    """

    name: str
    flops: int
    bytes: int
    seconds: float | None = None
    product: tuple[int, int, int] | None = None


class Executor(Protocol):
    """Runs one plan. Thread-safe; the same plan on the same input gives the same bits."""

    @property
    def workspace(self) -> int:
        """Bytes taken from the pool during one run."""

    def run(self, a: Matrix, b: Matrix, out: Matrix | None = None) -> Matrix:
        """C = A B in `out`, or in a new array.

        Raises:
            PlanError: the arrays are not of the plan's request.
        """


@runtime_checkable
class Strategy(Protocol):
    """A way to run programs. Registered by name; a changed algorithm gets a new version."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int: ...

    def can_run(self, program: Program, request: Request, profile: Profile) -> str | None:
        """None, or the reason why not, as a line for the user."""

    def predict(self, program: Program, request: Request, profile: Profile) -> list[Stage]:
        """The stages of one run of a program that can be run."""

    def workspace(self, program: Program, request: Request) -> int:
        """Bytes that one run takes from the pool: exact, or an upper bound where the strategy says so."""

    def build(self, program: Program, request: Request, pool: Pool | None = None) -> Executor:
        """Compile; may take seconds the first time."""


_registry: dict[str, Strategy] = {}


def register_strategy(strategy: Strategy) -> None:
    """Make a strategy known to `plan`; one of the same name is replaced."""
    if not isinstance(strategy, Strategy):
        raise PlanError(f"{type(strategy).__name__} is not a strategy: it needs can_run, predict, workspace and build")
    _registry[strategy.name] = strategy


def strategies(device: str | None = None) -> Mapping[str, Strategy]:
    """The strategies by name: those of this package, and the registered ones, which come first in a conflict.

    `device` leaves out this package's strategies for other devices.
    """
    from ..families import CPU as ON_CPU
    from ..families import CUDA as ON_GPU

    every: tuple[Strategy, ...] = (*ON_CPU, *ON_GPU)
    own: tuple[Strategy, ...] = {"cpu": ON_CPU, "cuda": ON_GPU}.get(device or "", every)
    return {**{strategy.name: strategy for strategy in own}, **_registry}


@dataclass(frozen=True)
class Candidate:
    """A program and the strategy that may run it. `label` says in words how the levels are cut."""

    program: Program
    strategy: str
    label: str

    def __str__(self) -> str:
        return f"{self.strategy}: {self.label}"


@dataclass(frozen=True)
class Plan:
    """The chosen candidate for a request, what it should cost, and why the others were not taken."""

    request: Request
    candidate: Candidate
    version: int
    stages: tuple[Stage, ...]
    workspace: int
    refused: tuple[tuple[str, str], ...]
    profile: str

    @property
    def seconds(self) -> float | None:
        """Predicted seconds of one run, or None where a stage's are not known."""
        times = [stage.seconds for stage in self.stages]
        known = [time for time in times if time is not None]
        return sum(known) if len(known) == len(times) else None

    @cached_property
    def digest(self) -> str:
        """The sha256 (hex) over program, strategy, its version, request and profile."""
        candidate = self.candidate
        parts = (candidate.program.digest, candidate.strategy, self.version, asdict(self.request), self.profile)
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def build(self, pool: Pool | None = None) -> Executor:
        """The executor of this plan."""
        return strategies()[self.candidate.strategy].build(self.candidate.program, self.request, pool)

    def __repr__(self) -> str:
        return f"<plan {self.request} by {self.candidate}, workspace {self.workspace} bytes>"


def unfit(program: Program, request: Request, device: str) -> str | None:
    """Why no strategy of a device can run a program for a request, whatever else it asks for; or None."""
    if request.device != device:
        return f"runs on {device}, not on {request.device}"
    if any(kind is not OperandKind.DENSE for kind in request.operands):
        return f"operands must be dense, not {' and '.join(request.operands)}"
    if program.ring.characteristic:
        return f"the program holds over {program.ring} only; lift its scheme to Z first"
    return None
