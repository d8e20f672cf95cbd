"""Compilation of the kernels of tensor products in advance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ...arguments import need
from ...errors import PlanError
from ...schemes_db.scheme import Scheme
from ..arrays import Tensor
from ..cuda.machine import require_device
from ..cuda.precompile import PrecompileReport, Progress, compile_ahead
from . import dispatch
from .ops import recipe_of
from .recipe import ProductRecipe


def compile_products(
    pairs: Iterable[tuple[Tensor, Tensor]],
    scheme: str | Scheme | Sequence[str | Scheme] = "auto",
    progress: Progress = lambda done, kernels: None,
) -> PrecompileReport:
    """Compile the kernels of `lcma.matmul(a, b, scheme)` for pairs of tensors without data, with these strides.

    For example for a linear layer: `torch.empty(rows, k, device="meta")` and `torch.empty(n, k, device="meta").t()`.

    Raises:
        PlanError: there is no GPU, or a tensor has data.
    """
    need(Iterable, pairs=pairs)
    need(Callable, progress=progress)
    require_device()
    recipe, calls = ProductRecipe.parse(recipe_of(scheme, None)), []
    for a, b in pairs:
        if not (a.is_meta and b.is_meta):
            raise PlanError(f"tensors are on {a.device} and {b.device}; make them on the device meta, without data")
        calls.append(partial(dispatch.run, recipe, a, b))
    return compile_ahead(calls, progress)
