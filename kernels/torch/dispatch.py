"""From a recipe and tensors to the executor that runs them; decided once for a range of M, kept for a shape."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from typing import Any

from ...errors import PlanError
from ..cuda.dtypes import name_of
from ..cuda.executor import TensorExecutor, request_of
from ..cuda.machine import device_profile, device_reason, index_of, require_device
from ..dense.cuda import choose, gains, vendor_plan
from ..dense.vendor_cuda import VendorExecutor
from ..planning.planner import plan
from ..planning.strategy import Executor, Plan, strategies
from ..prepared_operand import PreparedOperand
from ..request import CUDA_DTYPES, Request
from .recipe import Recipe, named

Tensor = Any

KEPT = 1024
"""Most plans, and most executors, that are kept."""

_lock = threading.Lock()
_plans: OrderedDict[Any, Plan] = OrderedDict()
_executors: OrderedDict[Any, Executor] = OrderedDict()


def bucket(m: int) -> int:
    """The number of rows that is planned for in place of m: m rounded up to six binary digits."""
    step = 1 << max(m.bit_length() - 6, 0)
    return -(-m // step) * step


def plan_of(recipe: Recipe, request: Request, index: int = 0) -> Plan:
    """The plan of a recipe for a request on GPU number `index`.

    Raises:
        PlanError, CatalogError, VerificationError: nothing can run it, or a scheme is none.
    """
    near = replace(
        request,
        m=bucket(request.m),
        max_error=recipe.max_error,
        max_workspace=recipe.max_workspace,
    )
    key = (recipe, near, index)
    with _lock:
        if key in _plans:
            return _plans[key]
    profile = device_profile(index) if device_reason(index) is None else None
    if not recipe.levels:
        return _keep(_plans, key, choose(near, profile)[0])
    require_device(index)
    found = plan(near, recipe.schemes(), profile=profile, strategy=recipe.strategy)
    if recipe.where_faster and not gains(found, vendor := vendor_plan(near, profile)):
        found = vendor
    return _keep(_plans, key, found)


def executor_of(recipe: Recipe, a: Tensor, b: Tensor, packed: Tensor | None = None) -> Executor:
    """What multiplies these tensors of a GPU; `packed` (B~) makes the second operand a static one.

    Raises:
        PlanError, CatalogError, VerificationError: as `plan_of`, or the tensors do not multiply.
    """
    dtype = str(a.dtype).removeprefix("torch.")
    if not recipe.levels and dtype not in CUDA_DTYPES:
        return VendorExecutor()  # what only the vendor multiplies is the vendor's
    dtype, index = name_of(a), index_of(a.device)
    key = (recipe, a.shape, b.shape, _order(a), _order(b), a.dtype, b.dtype, a.device, b.device, dtype, packed is None)
    with _lock:
        if key in _executors:
            return _executors[key]
    request = request_of(a, b, dtype, static=None if packed is None else "B")
    chosen = plan_of(recipe, request, index)
    limited = replace(request, max_error=recipe.max_error, max_workspace=recipe.max_workspace)
    way = strategies(request.device)[chosen.candidate.strategy]
    return _keep(_executors, key, way.build(chosen.candidate.program, limited))


def run(recipe: Recipe, a: Tensor, b: Tensor, out: Tensor | None = None, packed: Tensor | None = None) -> Tensor:
    """a b on a GPU. Matrices that share b are worked as one: their rows are joined."""
    if a.dim() > 2 and b.dim() == 2 and out is None:
        return run(recipe, a.reshape(-1, a.shape[-1]), b, packed=packed).view(*a.shape[:-1], b.shape[1])
    executor = executor_of(recipe, a, b, packed)
    if packed is not None and isinstance(executor, TensorExecutor) and executor.fits(packed):
        return executor.run(a, PreparedOperand(b, packed, packed.nbytes), out)
    result: Tensor = executor.run(a, b, out)
    return result


def pack(recipe: Recipe, b: Tensor, rows: int) -> tuple[Recipe, Tensor] | None:
    """B~ of a static operand (k, n) for products of about so many rows, and the recipe to give with it.

    That recipe names its schemes: another scheme's B~ would be of another product. None where the
    vendor's product is best.

    Raises:
        PlanError, CatalogError, VerificationError: as `plan_of`.
    """
    if rows < 1:
        raise PlanError(f"rows must be at least 1, not {rows}")
    if not recipe.levels:
        request = request_of(b.new_empty((rows, b.shape[0])), b, name_of(b), static="B")
        index = index_of(b.device)
        _, schemes = choose(request, device_profile(index) if device_reason(index) is None else None)
        recipe = replace(recipe, levels=tuple(map(named, schemes)), where_faster=True)
    if not recipe.levels:
        return None
    executor = executor_of(recipe, b.new_empty((rows, b.shape[0])), b, b)
    return (recipe, executor.prepare(b).sums) if isinstance(executor, TensorExecutor) else None


def forget() -> None:
    """Plan anew from now on: a profile was written, or the catalogue has better schemes."""
    with _lock:
        _plans.clear()
        _executors.clear()


def _order(x: Tensor) -> tuple[bool, bool]:
    """What of the strides a plan depends on."""
    return x.stride(-1) == 1, x.stride(-2) == 1


def _keep(table: OrderedDict[Any, Any], key: Any, value: Any) -> Any:
    with _lock:
        table[key] = value
        while len(table) > KEPT:
            table.popitem(last=False)
    return value
