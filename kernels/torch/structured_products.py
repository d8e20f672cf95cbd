"""Products of tensors by the factors of W, without the operator that autograd and compilers see.

Matrices X (cols, n) may have any strides: a batch-first one is the transpose of a tensor (n, cols). Nothing is copied
to bring it into another layout.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...errors import PlanError
from ..cuda.dtypes import allows_tf32, check_precision, factored_precision, vendor_precision
from ..cuda.requests import layout_of as tensor_layout
from ..factored import extra_bytes_for, factored_request
from ..learning import allowed
from ..planning.cache import plan_cache
from ..planning.trials.lesson import LearningExecutor
from ..plans.decisions import defer, executor_for
from ..precision import Arithmetic
from ..request import Layout, Request, layout_of
from ..structured.block_low_rank import BlockLowRank
from ..structured.chain import FactorChain
from .processor import HALVES, as_array

Options = tuple[bool, str | None, str | None]
"""`last`: the result is the transpose of a contiguous tensor, not contiguous; the strategy; the precision."""


def arithmetic_on_gpu(x: Tensor, precision: str | None) -> Arithmetic:
    """Return the arithmetic of products of this tensor on a GPU; a precision applies to float32 only."""
    return Arithmetic(str(x.dtype).removeprefix("torch."), factored_precision(x, precision))


def run(x: Tensor, factors: Sequence[Tensor], structure: FactorChain, options: Options) -> Tensor:
    """Compute W X (rows, n) for x (cols, n) and the factors of W, of tensors that nothing records or transforms.

    Complex tensors are no lazy conjugates (`resolve_conj`). What is refused is that of `structured_mm`.
    """
    if x.is_cuda:
        return _on_gpu(x, factors, structure, options)
    _checked(x, factors, structure)
    if x.device.type != "cpu":
        raise PlanError(f"products by factors run on cpu and cuda, not on {x.device}; move them with .to")
    check_precision(options[2])
    return _on_processor(x, factors, structure, *options[:2])


def _checked(x: Tensor, factors: Sequence[Tensor], structure: FactorChain) -> None:
    if x.dim() != 2 or x.shape[0] != structure.cols:
        raise PlanError(f"x (cols, n) of shape {tuple(x.shape)} does not fit {structure.name}: cols = {structure.cols}")
    for place, weights in enumerate(factors, 1):  # the executor checks their shapes
        if weights.dtype != x.dtype or weights.device != x.device:
            raise PlanError(
                f"x is {x.dtype} on {x.device} and factor {place} {weights.dtype} on {weights.device}; "
                "convert one with .to"
            )


@dataclass(frozen=True, slots=True)
class _Repeat:
    """An executor that has run a product with all checks, the factors' shapes, and the request."""

    executor: Any
    shapes: tuple[tuple[int, ...], ...]
    request: Request

    def now(self) -> Any:
        """Return the executor of the next call; None if it would learn where nothing may be learned."""
        if not isinstance(self.executor, LearningExecutor):
            return self.executor
        return self.executor.repeats() or (self.executor if allowed() else None)

    def fits(self, factors: Sequence[Tensor], dtype: torch.dtype, index: int) -> bool:
        """Return whether the checks of these factors would pass again, on the GPU of an index."""
        if len(factors) != len(self.shapes):
            return False
        for one, shape in zip(factors, self.shapes, strict=True):
            if one.shape != shape or one.dtype is not dtype or one.get_device() != index or not one.is_contiguous():
                return False
        return True


def _on_gpu(x: Tensor, factors: Sequence[Tensor], structure: FactorChain, options: Options) -> Tensor:
    if (index := x.get_device()) != torch._C._cuda_getDevice():  # kernels are launched on the current one
        with torch.cuda.device(x.device):
            return _on_gpu(x, factors, structure, options)
    dtype = x.dtype
    tf32 = allows_tf32() if dtype is torch.float32 else None
    # All that the checks of x depend on: a product that was run with them is a lookup.
    key = structure, x.shape, x.stride(), dtype, index, options, tf32
    known: _Repeat | None = plan_cache.get(key)
    executor = None if known is None else known.now()
    if executor is None and not allowed():
        known = plan_cache.get((_SETTLED, key))
        if known is not None:
            executor = known.executor
            if options[1] is None:
                defer(known.request)
    if known is None or executor is None or not known.fits(factors, dtype, index):
        return _checked_on_gpu(x, factors, structure, options, key)
    if tf32 is None:
        return executor.again(factors, x)
    with vendor_precision(known.request.arithmetic):
        product = executor.again(factors, x)
    return product


_SETTLED = "where nothing is learned"


def _checked_on_gpu(
    x: Tensor, factors: Sequence[Tensor], structure: FactorChain, options: Options, key: Hashable
) -> Tensor:
    """Plan and run with all checks, and store under the key what may be repeated without them."""
    check_precision(options[2])
    given = x
    if tensor_layout(x) is Layout.SCATTERED:
        x = x.contiguous()
    factors = [one.contiguous() for one in factors]
    _checked(x, factors, structure)
    request = gpu_request(structure, x, options)
    executor: Any = executor_for(request, strategy=options[1])
    with vendor_precision(request.arithmetic):
        product: Tensor = executor.run(factors, x)
    if x is given and hasattr(executor, "again"):
        repeat = _Repeat(executor, structure.factor_shapes, request)
        plan_cache.put(key if allowed() else (_SETTLED, key), repeat)
    return product


def gpu_request(structure: FactorChain, x: Tensor, options: Options) -> Request:
    """Return the request of a product on a GPU."""
    last, strategy, precision = options
    layouts = _given_layout(tensor_layout(x), x.shape, structure), Layout.COLUMNS if last else Layout.ROWS
    found, extra = arithmetic_on_gpu(x, precision)._asdict(), extra_bytes_for(strategy)
    return _request(structure, x.shape[1], device="cuda", layouts=layouts, max_extra_bytes=extra, **found)


def _given_layout(found: Layout, shape: Sequence[int], structure: FactorChain) -> Layout:
    """Return the layout of X in a request; a single column has both: what was measured has the one of its family."""
    if shape[1] != 1:
        return found
    return Layout.COLUMNS if isinstance(structure, BlockLowRank) else Layout.ROWS


_request = lru_cache(maxsize=512)(factored_request)
"""The request; the same object has its hash computed."""


def _on_processor(
    x: Tensor, factors: Sequence[Tensor], structure: FactorChain, last: bool, strategy: str | None
) -> Tensor:
    matrix, arrays = as_array(x), [np.ascontiguousarray(as_array(one)) for one in factors]
    if matrix.size and layout_of(matrix) is Layout.SCATTERED:
        matrix = np.ascontiguousarray(matrix)
    found = Layout.ROWS if {0, 1} & {*matrix.shape} else layout_of(matrix)
    layouts = _given_layout(found, matrix.shape, structure), Layout.COLUMNS if last else Layout.ROWS
    extra = extra_bytes_for(strategy)
    request = _request(structure, matrix.shape[1], matrix.dtype.name, layouts=layouts, max_extra_bytes=extra)
    product = executor_for(request, strategy=strategy).run(arrays, matrix)
    result = torch.from_numpy(product.T if last else product)
    result = result.to(x.dtype) if x.dtype in HALVES else result
    return result.T if last else result
