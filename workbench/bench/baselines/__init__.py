"""Other people's products, for the ratios of benchmarks; no planner knows them."""

from __future__ import annotations

from ....errors import PlanError
from ....kernels import Request
from ....kernels.removed import family_of
from .product import Baseline

NAMES = {
    "causal": ("halving", "halving:strassen"),
    "kronecker": ("einsum", "bsr", "csr"),
    "block-low-rank": ("permuted",),
}
"""The baselines by family of the request."""


def baseline(request: Request, name: str) -> Baseline:
    """Return a baseline by name.

    Raises:
        PlanError: the family of the request has no such baseline, or torch is not installed and it needs torch.
    """
    family = family_of(request)
    if name not in NAMES.get(family, ()):
        raise PlanError(f"{family} products have no baseline {name!r}")
    if family == "causal":
        from . import causal

        return causal.baseline(request, name)
    if family == "kronecker":
        from . import kronecker

        return kronecker.baseline(request, name)
    from . import block_low_rank

    return block_low_rank.baseline(request, name)
