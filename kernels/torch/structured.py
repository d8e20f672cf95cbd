"""The operator `lcma::structured_mm`: W X for a matrix W that is stored as factors, linear in every factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..cuda.dtypes import factored_precision
from ..factored import UNLIMITED, factored_request, product_dtype
from ..plans.decisions import decision_for
from ..structured.block_low_rank import parse_structure
from ..structured.chain import FactorChain, KroneckerSparse
from ..structured.rewrites import DENSE
from .bilinear import LIBRARY, Options, define_multilinear, define_opaque, is_eager, register_autocast
from .flops import flop_formula
from .structured_gradients import gradients
from .structured_products import run

NAME, INFERENCE = "structured_mm", "structured_mm_inference"


def structured_mm(
    x: Tensor,
    factors: Sequence[Tensor],
    structure: FactorChain,
    last: bool = False,
    strategy: str | None = None,
    precision: str | None = None,
) -> Tensor:
    """Compute W X (rows, n) for x (cols, n) and the factors of W; a Kronecker-sparse W has one factor.

    The result is contiguous, or with `last` the transpose of a contiguous tensor (n, rows). `precision` is how a GPU
    multiplies float32: "ieee", "tf32", "fp32-accurate", or None for torch's setting. The CPU multiplies strictly.

    Raises:
        PlanError: the operands do not fit each other, or there is no such precision.
    """
    if is_eager(x, *factors):
        return run(x, factors, structure, (last, strategy, precision))
    # In a graph that records nothing the operator without rules of derivatives is one call of Python, not two.
    op = _plain if torch.compiler.is_compiling() and not torch.is_grad_enabled() else _mm
    product: Tensor = op(x, list(factors), structure.text, last, strategy, precision)
    return product


def kronecker_chain(
    x: Tensor,
    factors: Sequence[Tensor],
    structures: Sequence[KroneckerSparse],
    last: bool,
    strategy: str | None,
    precision: str | None,
) -> Tensor:
    """Compute K1 ... KL x for x (cols, n), parameters (a, d, b, c) and their structures, right-most factor first."""
    for place in reversed(range(len(factors))):
        x = structured_mm(x, [factors[place]], structures[place], last and place == 0, strategy, precision)
    return x


def dense_where_faster(
    factors: Sequence[Tensor], structure: FactorChain, rows: int, max_extra_bytes: int, strategy: str | None = None
) -> Tensor | None:
    """Return W (rows, cols) if the planner takes the dense matrix for so many inputs, else None.

    None, too, if W takes more than `max_extra_bytes`: the factors are not freed.

    Raises:
        PlanError: nothing runs the product, or the factors are on a device other than cpu and cuda.
    """
    first = factors[0].detach()
    if structure.rows * structure.cols * first.element_size() > max_extra_bytes:
        return None
    device, precision = first.device.type, factored_precision(first, None) if first.is_cuda else None
    own = product_dtype(str(first.dtype).removeprefix("torch."), device)
    request = factored_request(structure, rows, own, device=device, max_extra_bytes=UNLIMITED, precision=precision)
    if decision_for(request, strategy=strategy).plan.candidate.strategy != DENSE:
        return None
    wide = [one.detach().to(torch.promote_types(one.dtype, torch.float32)) for one in factors]
    weight: Tensor = structure.dense(wide).to(first.dtype).contiguous()
    return weight


def _run(
    x: Tensor, factors: list[Tensor], structure: str, last: bool, strategy: str | None, precision: str | None = None
) -> Tensor:
    plain = [one.resolve_conj() for one in factors]
    return run(x.resolve_conj(), plain, parse_structure(structure), (last, strategy, precision))


def _fake(x: Tensor, factors: list[Tensor], structure: str, last: bool, *_: Any) -> Tensor:
    known = parse_structure(structure)
    torch._check(x.dim() == 2, lambda: "x must be a matrix (cols, n)")
    torch._check(x.shape[0] == known.cols, lambda: f"x must have {known.cols} rows")
    return x.new_empty((x.shape[1], known.rows)).T if last else x.new_empty((known.rows, x.shape[1]))


def _gradients(tensors: Sequence[Tensor], options: Options, grad: Tensor, needs: Any) -> Sequence[Tensor | None]:
    x, *factors = tensors
    return gradients(parse_structure(options[0]), x, factors, options[1:], grad, needs)


SCHEMA = "(Tensor x, Tensor[] factors, str structure, bool last, str? strategy, str? precision=None) -> Tensor"

_mm = define_multilinear(NAME + SCHEMA, _run, _fake, _gradients, exact_strides=True, listed=True)
_plain = define_opaque(INFERENCE + SCHEMA, _run, _fake, exact_strides=True)


def _batched(info: Any, dims: Any, x: Tensor, factors: list[Tensor], *options: Any) -> tuple[Tensor, int]:
    if all(dim is None for dim in dims[1]):
        columns = x.movedim(dims[0], 1)  # (cols, batch, n)
        product: Tensor = _mm(columns.flatten(1), factors, *options)
        return product.unflatten(1, columns.shape[1:]), 1
    found = []
    for place in range(info.batch_size):
        some = [w if dim is None else w.select(dim, place) for w, dim in zip(factors, dims[1], strict=True)]
        found.append(_mm(x if dims[0] is None else x.select(dims[0], place), some, *options))
    return torch.stack(found), 0


def _under_autocast(cast: Callable[[Tensor], Tensor], x: Tensor, factors: list[Tensor], *options: Any) -> Tensor:
    product: Tensor = _mm(cast(x), list(map(cast, factors)), *options)
    return product


for _name in (NAME, INFERENCE):
    torch.library.register_vmap(f"lcma::{_name}", _batched, lib=LIBRARY)
    register_autocast(_name, _under_autocast)


@flop_formula(torch.ops.lcma.structured_mm_inference)
@flop_formula(torch.ops.lcma.structured_mm)
def _flops(x_shape: Any, factor_shapes: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    """Return twice the parameters for every column of X."""
    return 2 * sum(int(np.prod(shape)) for shape in factor_shapes) * int(x_shape[-1])
