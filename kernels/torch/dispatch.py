"""Selection of the executor for a recipe and GPU tensors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from ...errors import PlanError
from ..arrays import Tensor
from ..cuda.dtypes import allows_tf32, dense_precision
from ..cuda.executor import VendorExecutor
from ..cuda.machine import index_of, require_device
from ..cuda.requests import request_of
from ..learning import Mode, allowed, mode
from ..planning.cache import plan_cache
from ..planning.strategy import Executor, Plan, PreparedOperand
from ..planning.trials.lesson import LearningExecutor
from ..plans.decisions import AUTO, defer, learning_executor, learns, plan_for
from ..request import CUDA_DTYPES, INT8, Request
from .recipe import ProductRecipe, named

SMALL = 1 << 28
"""Multiplications of a product below which `auto` calls torch without planning: launches alone would cost the gain.

At 50 Tflop/s, the rate of an H100 in strict float32, it takes 11 us.
"""

FREE = ProductRecipe()
"""The recipe that leaves everything to the planner."""


def recipe_plan(recipe: ProductRecipe, request: Request, index: int = 0) -> Plan:
    """Return the plan of a recipe for a request on GPU number `index`.

    Raises:
        PlanError, CatalogError, VerificationError: nothing can run it, or a scheme is invalid.
    """
    limited = replace(request, max_error=recipe.max_error, max_workspace=recipe.max_workspace)
    if recipe.levels:
        require_device(index)
    scheme: Any = recipe.schemes() if recipe.levels else AUTO
    return plan_for(limited, scheme, strategy=recipe.strategy, where_faster=recipe.where_faster)


def plan_for_rows(recipe: ProductRecipe, b: Tensor, rows: int, static: bool) -> Plan:
    """Return the plan of a recipe for so many rows times b (k, n), which is static or not. See `recipe_plan`."""
    precision = dense_precision(b, recipe.precision)
    request = request_of(b.new_empty((rows, b.shape[0])), b, precision, static="B" if static else None)
    return recipe_plan(recipe, request, index_of(b.device))


def recipe_executor(recipe: ProductRecipe, a: Tensor, b: Tensor, packed: Tensor | None = None) -> Executor:
    """Return the executor for these GPU tensors; with `packed` (B~) the second operand is static. See `recipe_plan`."""
    dtype = str(a.dtype).removeprefix("torch.")
    if not recipe.levels and dtype not in (*CUDA_DTYPES, INT8):
        return VendorExecutor()  # dtypes that only the vendor supports
    if recipe == FREE and dtype != INT8 and packed is None and a.shape[-2] * b.numel() < SMALL:
        return VendorExecutor()
    precision, index = dense_precision(a, recipe.precision), index_of(a.device)
    now = Mode.FROZEN if recipe.levels or recipe.strategy is not None or packed is not None else mode()
    orders = _order(a), _order(b)
    key = recipe, a.shape, b.shape, orders, a.dtype, b.dtype, a.device, b.device, precision, packed is None
    if now is Mode.LEARNS and (learning := _learning(key, recipe, a, b, precision)) is not None:
        return learning
    found = plan_cache.get(key)
    if found is None:
        request = request_of(a, b, precision, static=None if packed is None else "B", max_abs=recipe.max_abs)
        plan = recipe_plan(recipe, request, index)
        if recipe.levels and a.is_cuda:
            from ..cuda.bench import compile_now  # the code of schemes is slow to import

            compile_now(plan)
        found = plan_cache.put(key, (plan.build(), request))
    executor, request = cast("tuple[Executor, Request]", found)
    if now is Mode.DEFERS and recipe.max_error is None and recipe.max_workspace is None:
        defer(request)
    return executor


def automatic(a: Tensor, b: Tensor) -> Tensor:
    """Compute a b on a GPU by the fastest plan that is known, of tensors of one dtype that nothing records."""
    key = a.shape, b.shape, a.stride(), b.stride(), a.dtype, a.device, allows_tf32()
    known: LearningExecutor | None = plan_cache.entries.get(key)
    if known is not None and known.lent > 0:
        known.lent -= 1
        return cast(Any, known.loan)(a, b)
    if a.dim() > 2 and b.dim() == 2:
        return automatic(a.reshape(-1, a.shape[-1]), b).view(*a.shape[:-1], b.shape[1])
    learning: LearningExecutor | None = plan_cache.get(key)
    repeated = None if learning is None else learning.repeats() or (learning if allowed() else None)
    if learning is not None and repeated is not None:
        learning.lend()
        return repeated.again(a, b)
    executor = recipe_executor(FREE, a, b)
    if isinstance(executor, LearningExecutor):
        plan_cache.put(key, executor)
    return executor.run(a, b)


def _learning(key: Any, recipe: ProductRecipe, a: Tensor, b: Tensor, precision: str | None) -> Executor | None:
    """Return the executor that learns from the calls of these tensors, the vendor's until their class is prepared.

    None if nothing is learned of such products.
    """
    found: Executor | None = plan_cache.get(("learning", key))
    if found is None:
        request = request_of(a, b, precision, max_abs=recipe.max_abs)
        request = replace(request, max_error=recipe.max_error, max_workspace=recipe.max_workspace)
        if not learns(request):
            return None
        found = learning_executor(request, wait=False)
        if found is None:
            return VendorExecutor.of(request)
        plan_cache.put(("learning", key), found)
    return found


def run(recipe: ProductRecipe, a: Tensor, b: Tensor, out: Tensor | None = None, packed: Tensor | None = None) -> Tensor:
    """Compute a b on a GPU. Matrices that share b are joined by rows to one."""
    if a.dim() > 2 and b.dim() == 2 and out is None and recipe.is_general:
        return run(recipe, a.reshape(-1, a.shape[-1]), b, packed=packed).view(*a.shape[:-1], b.shape[1])
    executor = recipe_executor(recipe, a, b, packed)
    if packed is not None and getattr(executor, "prepares", False) and cast(Any, executor).fits(packed):
        return executor.run(a, PreparedOperand(b, packed, packed.nbytes), out)
    return executor.run(a, b, out)


def pack(recipe: ProductRecipe, b: Tensor, rows: int) -> tuple[ProductRecipe, Tensor] | None:
    """Return the recipe to use and B~ of a static operand (k, n), for products of about so many rows.

    The recipe names its schemes, as B~ depends on them. Without a scheme the second is the quantised B in fp8, or the
    scaled B in tf32, which any number of rows may use. None if the vendor's product is best. See `recipe_plan`.
    """
    if rows < 1:
        raise PlanError(f"rows must be at least 1, not {rows}")
    from ..cuda.packed_product import PackedProduct  # with the code of schemes, which a first product does not wait for
    from ..dense.chains import Chain

    if not recipe.levels:
        plan = plan_for_rows(recipe, b, rows, static=True)
        built: Any = plan.build()
        if getattr(built, "prepares", False) and isinstance(built.core, PackedProduct):
            return recipe, built.prepare(b).sums
        source = plan.candidate.source
        schemes = [level.scheme for level in source.levels] if isinstance(source, Chain) else []
        recipe = replace(recipe, levels=tuple(map(named, schemes)), where_faster=True)
    if not recipe.levels:
        return None
    executor = recipe_executor(recipe, b.new_empty((rows, b.shape[0])), b, b)
    return (recipe, cast(Any, executor).prepare(b).sums) if getattr(executor, "prepares", False) else None


def _order(x: Tensor) -> tuple[bool, bool]:
    """Return the properties of the strides that a plan depends on."""
    return x.stride(-1) == 1, x.stride(-2) == 1
