"""Other people's products, for the ratios of benchmarks; no planner knows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from ....errors import PlanError
from ....kernels import Candidate, Plan, Request, plan_for
from ....kernels.arrays import torch
from ....kernels.planning.strategy import PreparedOperand
from ....kernels.structured.chain import KroneckerSparse
from ...products import within_memory

Array = Any
"""A numpy array or a torch tensor."""

Factors = Sequence[Array]


def is_contiguous(x: Array) -> bool:
    """Return whether an array is stored by rows without gaps."""
    return bool(x.flags.c_contiguous if isinstance(x, np.ndarray) else x.is_contiguous())


def empty(like: Array, shape: tuple[int, ...]) -> Array:
    """Allocate contiguous memory of the same dtype."""
    return np.empty(shape, like.dtype) if isinstance(like, np.ndarray) else like.new_empty(shape)


def batched_product(left: Array, right: Array, out: Array) -> None:
    """Compute out = left right, a batch of products."""
    if isinstance(out, np.ndarray):
        np.matmul(left, right, out=out)
        return
    torch.bmm(left, right, out=out)


@dataclass(frozen=True)
class Baseline:
    """A method that is named, timed and weighed as a plan is, and whose seconds nobody predicts.

    `multiply(factors, x, out)` computes out (rows, n) = W x for x (cols, n), from the result of `rewrite(factors)`. Of
    a triangular product A takes the place of the factors.
    `workspace` is an upper bound of the bytes of a run, the rewritten factors included.
    """

    request: Request
    name: str
    multiply: Callable[[Factors, Array, Array], None]
    workspace: int
    rewrite: Callable[[Factors], Factors] = lambda factors: factors
    seconds: None = None

    @property
    def candidate(self) -> Candidate:
        """The family and the name, as a plan has them."""
        return Candidate(self.request.family, self.name)

    def build(self) -> Baseline:
        """Return what runs: itself."""
        return self

    def prepare(self, a: Factors) -> PreparedOperand:
        """Return the factors in the method's format, to pass to `run` instead of them."""
        return PreparedOperand(a, self.rewrite(a), 0)

    def run(self, a: Factors | PreparedOperand, b: Array, out: Array) -> Array:
        """Compute W x in `out` (rows, n) for x (cols, n)."""
        factors = a.sums if isinstance(a, PreparedOperand) else self.rewrite(a)
        self.multiply(factors, b, out)
        return out


NAMES = {
    "causal": ("halving", "halving:strassen"),
    "kronecker": ("bmm", "einsum", "bsr", "csr"),
    "block-low-rank": ("permuted",),
}
"""The baselines by kind of the request."""


def named_plan(request: Request, name: str) -> Plan | Baseline:
    """Return a baseline, or the plan of the strategy of this name ("auto": of the planner's choice).

    Raises:
        PlanError: it cannot run.
    """
    if name in NAMES.get(kind_of(request), ()):
        return baseline(request, name)
    return plan_for(request, strategy=None if name == "auto" else name)


def prepared(
    plan: Plan | Baseline, request: Request, a: Any, b: Any, out: Any, error_of: Callable[[Any], float]
) -> tuple[Callable[[], Any], float]:
    """The call of a plan on operands, A prepared before where it stays the same, and the error of its result.

    Raises:
        PlanError: it cannot run, or there is too little memory.
    """
    with within_memory(request, plan.candidate):
        executor: Any = plan.build()
        left = executor.prepare(a) if request.static == "A" else a
        error = error_of(executor.run(left, b, out))
    return partial(executor.run, left, b, out), error


def kind_of(request: Request) -> str:
    """Return the family of a request; of factored matrices the kind, "kronecker" or "block-low-rank"."""
    if (family := request.family) != "structured":
        return family
    return "kronecker" if isinstance(request.structures[0], KroneckerSparse) else "block-low-rank"


def baseline(request: Request, name: str) -> Baseline:
    """Return a baseline by name.

    Raises:
        PlanError: the kind of the request has no such baseline, or torch is not installed and it needs torch.
    """
    kind = kind_of(request)
    if name not in NAMES.get(kind, ()):
        raise PlanError(f"{kind} products have no baseline {name!r}")
    return import_module(f".{kind.replace('-', '_')}", __package__).baseline(request, name)
