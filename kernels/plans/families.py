"""The strategies of the devices, including registered ones, those that were removed, and the machine of a request."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from ...errors import PlanError
from ..planning.machine import Machine
from ..planning.planner import Strategies
from ..planning.strategy import Strategy, registered
from ..request import Request

DEVICES = ("cpu", "cuda")

FOLDERS = {"dense": "dense", "causal": "causal", "masked": "causal", "structured": "structured", "exact": "exact"}
"""The folders by family, as `Request.family` names it: STRATEGIES of a device are in the module of its name there."""


def strategies(device: str, family: str | None = None) -> Strategies:
    """Return the strategies of a device by family and name; a registered one replaces its namesake.

    Of one `family` alone its modules are imported alone: the first call of a process pays for them.
    """
    own, more = _own(device, family), registered(device)
    return {**own, **more} if more else own


@lru_cache(maxsize=16)
def _own(device: str, family: str | None) -> dict[tuple[str, str], Strategy]:
    folders = dict.fromkeys(folder for name, folder in FOLDERS.items() if family in (None, name) and device in DEVICES)
    every = (one for folder in folders for one in import_module(f"...{folder}.{device}", __name__).STRATEGIES)
    return {(strategy.family, strategy.name): strategy for strategy in every}


def check_device_of(strategy: str | None, device: str) -> None:
    """Check that a strategy, as "scheme" or "scheme:tasks", is not one of other devices only.

    Names that no device has are left to the planner, which lists those it knows.

    Raises:
        PlanError: this device has no such strategy, and another one has.
    """
    name = (strategy or "").partition(":")[0]
    if not name or name in (known := _names(device)):
        return
    for other in DEVICES:
        if name in _names(other):
            names = ", ".join(sorted(known))
            raise PlanError(f"strategy {name!r} is one of device {other}, not of {device}; choose one of {names}")


def _names(device: str) -> set[str]:
    return {strategy.name for strategy in strategies(device).values()}


def machine_for(request: Request, measure: bool = True) -> Machine:
    """Return the machine that a request runs on: the CPU, or the current GPU (an H200 if there is none).

    `measure` permits to measure missing rates of exact products over GF(2), for about a second.
    """
    if request.device != "cpu":
        from ..cuda.machine import cuda_machine

        return cuda_machine()
    if request.ring is not None:
        from ..exact.cpu import exact_machine

        return exact_machine(request, measure)
    from ..cpu.machine import cpu_machine

    return cpu_machine(request.dtype)


REMOVED = {
    ("cuda", "dense", "scheme:fused"): "scheme:stack",
    ("cuda", "dense", "scheme:loop"): "scaled-half",
    **{("cuda", "dense", name): "fp8-vendor" for name in ("fp8-scheme", "fp8-blocked")},
    **{("cuda", "exact", f"scheme:{method}"): "digits" for method in ("float64", "digits")},
    ("cuda", "exact", "scheme:vendor"): "scheme",
    ("cpu", "dense", "scheme:depth-first"): "scheme:loop",
    ("cpu", "dense", "naive"): "scheme",
    ("cuda", "causal", "halving"): "strips",
    ("cpu", "causal", "halving"): "strips",
    ("cuda", "structured", "fused"): "gather",
    ("cuda", "structured", "partial"): "tiled",
    ("cuda", "structured", "compiled"): "strided",
    ("cuda", "structured", "scheme"): "strided",
    **{(device, "structured", name): "strided" for device in ("cpu", "cuda") for name in ("permuted", "quantized")},
    **{("cuda", "structured", name): "strided" for name in ("bmm", "einsum", "bsr", "csr")},
    **{("cpu", "structured", name): "slabs" for name in ("bmm", "einsum", "bsr", "csr")},
}
"""Strategies that were removed once they were measured: the replacement by device, family and name (with its method, if
only the method was removed). docs/benchmarks/removed.md has the figures.
"""


def check_not_removed(strategy: str | None, request: Request) -> None:
    """Check that a strategy, as "scheme" or "scheme:tasks", was not removed; a registered one of its name is accepted.

    Raises:
        PlanError: it was removed; the message names the replacement.
    """
    if strategy is not None and (reason := removal_of(strategy, request.family, request.device)):
        raise PlanError(reason)


def removal_of(strategy: str, family: str, device: str) -> str | None:
    """Return the reason why a strategy is refused, with its replacement; None if it was not removed."""
    instead = REMOVED.get((device, family, strategy))
    if instead is None or (family, strategy.partition(":")[0]) in registered(device):
        return None
    return f"strategy {strategy} was removed: its figures are in docs/benchmarks/removed.md; use {instead}"
