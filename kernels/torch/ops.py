"""Products of torch tensors: one opaque operator that autograd, autocast, compile and flop counters support.

`lcma::bilinear_mm(a, b, recipe, packed=None)` is `a @ b` by the schemes of a recipe (recipe.py).
It plans inside, by ranges of M, so that a new M causes no recompilation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...arguments import need
from ...errors import PlanError
from ...schemes_db.scheme import Scheme
from ..cuda.dtypes import dense_precision
from ..cuda.machine import require_device
from ..cuda.requests import check_alike, layout_of
from ..learning import deferred
from ..out import check_out
from ..planning.trials.lesson import LearningExecutor
from ..plans.decisions import learning_executor, learns, plan_and_executor
from ..precision import FP8
from ..request import Layout, Request
from . import dispatch
from .bilinear import (
    PLAIN,
    Options,
    define_bilinear,
    empty_product,
    is_differentiated,
    is_eager,
    refuse_sharded,
    register_autocast,
)
from .modules import is_sharded
from .processor import through_numpy
from .recipe import AUTO, ProductRecipe, named

if TYPE_CHECKING:
    from ..cuda.precompile import PrecompileReport, Progress

SchemeLike = str | Scheme


def matmul(
    a: Tensor,
    b: Tensor,
    scheme: SchemeLike | Sequence[SchemeLike] = AUTO,
    levels: int | None = None,
    out: Tensor | None = None,
    *,
    strategy: str | None = None,
    precision: str | None = None,
    **limits: float | None,
) -> Tensor:
    """See `lcma.matmul`, for tensors; `limits` are `max_error`, `max_workspace` and `max_abs`.

    Differentiable, except with `out`; the strategy and the limits are those of the backward products, too. The CPU
    multiplies strictly, whatever the precision.
    """
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        kinds = " and ".join(type(x).__name__ for x in (a, b))
        raise PlanError(f"the operands are {kinds}; make both tensors with torch.as_tensor")
    recipe = recipe_of(scheme, levels) + (f"@{strategy}" if strategy else "")
    for name, limit in limits.items():
        if limit is not None:
            recipe += f";{name}={limit}"
    if precision is not None:
        dense_precision(a, precision)
        recipe += f";precision={precision}"
    if out is not None:
        if is_differentiated(a, b):
            raise PlanError("a product into `out` has no gradient and no tangent; leave out away, or use no_grad()")
        refuse_sharded(a, b)
        _run(a, b, recipe, None, out)
        return out
    if recipe == AUTO:
        return automatic(a, b)
    if is_eager(a, b) and a.is_cuda:
        return _run(a, b, recipe, None, None)
    return bilinear_mm(a, b, recipe)


def automatic(a: Tensor, b: Tensor) -> Tensor:
    """Compute a @ b as `matmul` with defaults does. The operator, which is avoided here, takes microseconds."""
    if is_small(a, b):
        return torch.matmul(a, b)
    if torch.compiler.is_compiling():
        return bilinear_mm(a, b, AUTO)
    if a.is_cuda and a.dim() > 1 and b.dim() > 1 and a.dtype == b.dtype and a.device == b.device and is_eager(a, b):
        return dispatch.automatic(a, b)
    if is_the_vendors(a, b):
        return torch.matmul(a, b)
    return bilinear_mm(a, b, AUTO)


def is_small(a: Tensor, b: Tensor, transposed: bool = False) -> bool:
    """Return whether these are plain GPU tensors whose product is torch's for its size; they may not fit each other.

    With `transposed` b is (n, k): a view of it takes as long as this. False in a graph whose sizes are not known.
    """
    if not a.is_cuda or a.dim() < 2 or b.dim() < 2:
        return False
    compiles, count = torch.compiler.is_compiling(), a.numel() * b.shape[-2 if transposed else -1]
    if not compiles and count >= dispatch.SMALL:
        return False  # what follows takes a microsecond
    if a.dtype != b.dtype or a.dtype not in _FLOATS:
        return False
    count = max(count, a.shape[-2] * b.numel())
    if compiles:
        from torch.fx.experimental.symbolic_shapes import statically_known_true

        return bool(statically_known_true(count < dispatch.SMALL))
    return type(a) in PLAIN and type(b) in PLAIN and a.device == b.device and count < dispatch.SMALL


_FLOATS = frozenset({torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128})


def recipe_of(scheme: SchemeLike | Sequence[SchemeLike] = AUTO, levels: int | None = None) -> str:
    """Return the text of the recipe for a scheme in so many levels (1), or for one scheme per level.

    Raises:
        PlanError: the levels are invalid, or a scheme cannot be run.
    """
    if isinstance(scheme, str | Scheme) or not isinstance(scheme, Sequence):
        times = 1 if levels is None else levels
        if times < 0:
            raise PlanError(f"levels must be at least 0, not {times}")
        name = named(scheme)
        return name if name == AUTO or "/" in name else "/".join([name] * times) or _CLASSICAL
    if levels not in (None, 1, len(scheme)):
        raise PlanError(f"levels is {levels}, but {len(scheme)} schemes are given; leave levels out")
    return "/".join(map(named, scheme)) or _CLASSICAL


_CLASSICAL = "naive:1x1x1"

_EIGHT_BITS = f";precision={FP8}"
"""The end of the recipe of a product in fp8."""


def _refuse_gradients(options: Options) -> None:
    """Raise PlanError if the recipe has none."""
    if options[0].endswith(_EIGHT_BITS):
        raise PlanError("products in fp8 have no gradient and no tangent; use no_grad(), or leave the precision out")


def _fake(a: Tensor, b: Tensor, recipe: str, packed: Tensor | None = None) -> Tensor:
    wide = a.dtype == torch.int8 and ProductRecipe.parse(recipe).max_abs is not None
    return empty_product(a.to(torch.int32) if wide else a, b)


def _gradient(a: Tensor, b: Tensor, options: Options, grad: Tensor, of: int) -> Tensor:
    """Return dA = dC B^H or dB = A^H dC, by the permuted schemes for these sizes, which have equal rank."""
    recipe = ProductRecipe.parse(options[0])
    if of == 0:
        return bilinear_mm(grad, b.mH, str(recipe.permuted("mnk")))
    if b.dim() == 2 and a.dim() > 2 and recipe.is_general:  # rows of all matrices are rows of one
        a, grad = a.flatten(0, -2), grad.flatten(0, -2)
    return bilinear_mm(a.mH, grad, str(recipe.permuted("kmn")))


def _tangent_options(options: Options, operand: int) -> Options:
    """Drop B~ if b is replaced by its tangent: B~ is that of b."""
    return options if operand == 0 else (options[0], None)


def _run_sharded(a: Tensor, b: Tensor, options: Options) -> Tensor:
    """Compute a product of DTensors from their local parts, with the plan for the local sizes."""
    from .sharding import sharded_product  # torch.distributed.tensor is slow to import

    return sharded_product(a, b, options[0])


def compile_products(
    pairs: Iterable[tuple[Tensor, Tensor]],
    scheme: SchemeLike | Sequence[SchemeLike] = AUTO,
    progress: Progress = lambda done, kernels: None,
) -> PrecompileReport:
    """Compile the kernels of `lcma.matmul(a, b, scheme)` for pairs of tensors without data, with these strides.

    For example for a linear layer: `torch.empty(rows, k, device="meta")` and `torch.empty(n, k, device="meta").t()`.

    Raises:
        PlanError: there is no GPU, or a tensor has data.
    """
    from ..cuda.precompile import compile_ahead  # a first product does not wait for it

    need(Iterable, pairs=pairs)
    need(Callable, progress=progress)
    require_device()
    recipe, calls = ProductRecipe.parse(recipe_of(scheme)), []
    for a, b in pairs:
        if not (a.is_meta and b.is_meta):
            raise PlanError(f"tensors are on {a.device} and {b.device}; make them on the device meta, without data")
        calls.append(partial(dispatch.run, recipe, a, b))
    return compile_ahead(calls, progress)


bilinear_mm = define_bilinear(
    "bilinear_mm(Tensor a, Tensor b, str recipe, Tensor? packed=None) -> Tensor",
    lambda a, b, recipe, packed=None: _run(a, b, recipe, packed, None),
    _fake,
    _gradient,
    tangent_options=_tangent_options,
    sharded=_run_sharded,
    refuse_gradients=_refuse_gradients,
)
"""bilinear_mm(a, b, recipe, packed=None): a @ b as `matmul` for a (..., M, K) and b (..., K, N), by a recipe's text.

`packed` is a precomputed B~ of b.
"""


def _under_autocast(
    cast: Callable[[Tensor], Tensor], a: Tensor, b: Tensor, recipe: str, packed: Tensor | None = None
) -> Tensor:
    a, b = cast(a), cast(b)
    # A quantised B is bytes, for a b of any dtype.
    return bilinear_mm(a, b, recipe, packed if packed is not None and packed.dtype in (b.dtype, torch.uint8) else None)


register_autocast("bilinear_mm", _under_autocast)


def _run(a: Tensor, b: Tensor, text: str, packed: Tensor | None, out: Tensor | None) -> Tensor:
    recipe = ProductRecipe.parse(text)
    check_alike(a, b)
    if a.device.type == "cuda":
        return dispatch.run(recipe, a, b, out, packed)
    if a.device.type == "cpu":
        return _run_on_processor(a, b, recipe, out)
    raise PlanError(f"products by schemes run on cpu and cuda, not on {a.device}; move the operands with .to")


def _run_on_processor(a: Tensor, b: Tensor, recipe: ProductRecipe, out: Tensor | None) -> Tensor:
    """Run on the executors of numpy arrays."""
    from ..products.arrays import multiply

    scheme: Any = recipe.schemes() if recipe.levels else AUTO
    limits: Any = {name: getattr(recipe, name) for name in ("max_error", "max_workspace", "max_abs")}
    result = through_numpy(partial(multiply, scheme=scheme, strategy=recipe.strategy, **limits), a, b)
    if out is None:
        return result
    check_out(out, result.shape, result.dtype, result.device)
    return out.copy_(result)


def is_the_vendors(a: Tensor, b: Tensor) -> bool:
    """Return whether the plan for these tensors is the library's own product, so that torch's product can be called."""
    if a.dim() < 2 or b.dim() < 2 or a.dtype != b.dtype or a.device != b.device:
        return False
    if is_sharded(a) or is_sharded(b):
        return False  # the operator has rules for them
    if is_differentiated(a, b):
        with deferred():
            return _is_the_vendors(a, b)
    return _is_the_vendors(a, b)


def _is_the_vendors(a: Tensor, b: Tensor) -> bool:
    if a.device.type == "cpu":
        return a.dtype in (torch.float32, torch.float64) and b.dim() == 2 and _is_processors(a, b)
    if a.device.type != "cuda":
        return False
    if a.dim() > 2 and b.dim() == 2:
        a = a.detach().reshape(-1, a.shape[-1])
    executor = dispatch.recipe_executor(dispatch.FREE, a, b)
    if isinstance(executor, LearningExecutor):
        return executor.left_to("vendor")
    return isinstance(executor, dispatch.VendorExecutor)


def _is_processors(a: Tensor, b: Tensor) -> bool:
    """Return the same for a product by one matrix on the CPU: small ones are not planned."""
    from ..products.arrays import SMALL

    (k, n), rows = b.shape, math.prod(a.shape[:-1])
    if rows * k * n < SMALL or a.shape[-1] != k:
        return True  # torch reports misfits
    layouts = (Layout.ROWS if a.stride(-1) == 1 else Layout.SCATTERED, layout_of(b), Layout.ROWS)
    request = Request(rows, k, n, str(a.dtype).removeprefix("torch."), layouts=layouts)
    if learns(request):
        learning = learning_executor(request, wait=False)
        return learning is None or learning.left_to("torch")
    return plan_and_executor(request)[0].candidate.strategy == "vendor"
