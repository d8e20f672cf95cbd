"""Strategies that were measured, lost and were removed: each name is refused with what to use instead.

docs/benchmarks/removed.md has the figures.
"""

from __future__ import annotations

from ...errors import PlanError
from ..planning.strategy import registered
from ..request import Request

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
    ("cuda", "structured", "partial"): "tiled",
    ("cuda", "structured", "compiled"): "strided",
    ("cuda", "structured", "scheme"): "strided",
    **{(device, "structured", name): "strided" for device in ("cpu", "cuda") for name in ("permuted", "quantized")},
    **{("cuda", "structured", name): "strided" for name in ("bmm", "einsum", "bsr", "csr")},
    **{("cpu", "structured", name): "slabs" for name in ("bmm", "einsum", "bsr", "csr")},
}
"""The replacement by device, family and name of a strategy (with its method, if only the method was removed)."""


def check_not_removed(strategy: str | None, request: Request) -> None:
    """Check that a strategy, as "scheme" or "scheme:tasks", was not removed; a registered one of its name is accepted.

    Raises:
        PlanError: it was removed; the message names the replacement.
    """
    if strategy is None:
        return
    if reason := removal_of(strategy, request.family, request.device):
        raise PlanError(reason)


def removal_of(strategy: str, family: str, device: str) -> str | None:
    """Return the reason why a strategy is refused, with its replacement; None if it was not removed."""
    instead = REMOVED.get((device, family, strategy))
    if instead is None or (family, strategy.partition(":")[0]) in registered(device):
        return None
    return f"strategy {strategy} was removed: others are faster (docs/benchmarks/removed.md); use {instead}"
