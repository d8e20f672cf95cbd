"""Other people's products, for the ratios of benchmarks; no planner knows them."""

from __future__ import annotations

from ....errors import PlanError
from ....kernels import Request
from ....kernels.plans.removed import family_of
from .product import Baseline

NAMES = {
    "causal": ("halving", "halving:strassen"),
    "kronecker": ("bmm", "einsum", "bsr", "csr"),
    "block-low-rank": ("permuted",),
}
"""The baselines by kind of the request."""


def kind_of(request: Request) -> str:
    """Return the family of a request; of factored matrices the kind, "kronecker" or "block-low-rank"."""
    from ....kernels.structured.chain import KroneckerSparse

    if (family := family_of(request)) != "structured":
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
    if kind == "causal":
        from . import causal

        return causal.baseline(request, name)
    if kind == "kronecker":
        from . import kronecker

        return kronecker.baseline(request, name)
    from . import block_low_rank

    return block_low_rank.baseline(request, name)
