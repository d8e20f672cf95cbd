"""Other people's products, for the ratios of benchmarks; no planner knows them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from ....errors import PlanError
from ....kernels import Plan, Request, plan_for
from ....kernels.structured.chain import KroneckerSparse
from ...products import within_memory
from .product import Baseline

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
    found: Baseline = import_module(f".{kind.replace('-', '_')}", __package__).baseline(request, name)
    return found
