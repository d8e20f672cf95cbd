"""Exact causal attention on triangular products: all six products, forward and backward, by proven schemes."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...arguments import NUMBER, need
from ...errors import PlanError
from ...schemes_db.masks import refuse_masks
from ..products.triangular import scores as causal_scores
from ..products.triangular import strategy_text, transposed_values, values
from .bilinear import is_transformed, sum_to
from .triangular import triangular_mm

LEAST_WORK = 2**21
"""Length times head size from which float32 and float64 on the CPU are computed by our products: measured on two
cores in float32, over fused attention 1.15 to 1.39 forward and 0.99 to 1.36 with the backward pass (lengths of 1024 to
4096, head sizes of 512 to 2048; `lcma bench causal --rows "attention*"`). Half of it: 0.78 to 1.07 and 0.81 to 1.01.

Otherwise fused attention, which never writes the scores, is used.
"""

ROWS = 512
"""Rows of the scores that the softmax computes at a time: columns beyond their last one are not touched."""


def causal_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = True,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    sinks: Tensor | None = None,
    need_weights: bool = False,
    strategy: str | None = None,
    scheme: str | None = None,
) -> Any:
    """Compute softmax(scale Q K^T + bias, below the diagonal) V, as scaled_dot_product_attention(is_causal=True).

    query (..., H, Lq, d), key (..., Hk, Lk, d), value (..., Hk, Lk, dv), all of one floating dtype;
    with `enable_gqa` H may be a multiple of Hk. `attn_mask` is a bias that is added to the scaled
    scores, or boolean, False for masked entries; it broadcasts to (..., H, Lq, Lk). `sinks`
    (H,) are logits that are added to every row's softmax and have no value. A fully masked row
    is zero. `need_weights`: the result is (output, weights), the weights after dropout and detached.

    `strategy` "products" materialises the weights and computes the triangular products by the fastest
    strategy known, a strategy of `causal_qk` (or a `scheme`) by that one, and "sdpa" calls
    torch. None selects sdpa, unless the products should be faster
    (float32 and float64 on the CPU, long sequences, wide heads) or sdpa lacks an option
    (a bias or mask, sinks, weights).

    Half precision on the CPU is computed in float32. Differentiable to any order in query, key,
    value, a bias and sinks; derivatives after the first need more memory.

    Raises:
        PlanError: operands that do not fit each other, or options that sdpa does not have with `strategy="sdpa"`.
    """
    need(torch.Tensor, query=query, key=key, value=value)
    need(torch.Tensor | None, attn_mask=attn_mask, sinks=sinks)
    need(NUMBER, dropout_p=dropout_p)
    need(NUMBER | None, scale=scale)
    need(str | None, strategy=strategy, scheme=scheme)
    need(bool, is_causal=is_causal, enable_gqa=enable_gqa, need_weights=need_weights)

    refuse_masks(query=query, key=key, value=value, attn_mask=attn_mask, sinks=sinks)
    _check(query, key, value, dropout_p, is_causal, enable_gqa)
    text = strategy_text(None if strategy in ("products", "sdpa") else strategy, scheme)
    special = attn_mask is not None or sinks is not None or need_weights
    if strategy == "sdpa" and (special or scheme is not None):
        raise PlanError(
            "sdpa has no bias or mask beside the causal one, no sinks, weights, schemes; leave strategy out"
        )
    if torch.is_autocast_enabled(query.device.type):
        narrow = torch.get_autocast_dtype(query.device.type)
        query, key, value = (x.to(narrow) for x in (query, key, value))
    if not special and (strategy == "sdpa" or (text is None and strategy is None and not pays(query, key, value))):
        attention = torch.nn.functional.scaled_dot_product_attention
        return attention(query, key, value, dropout_p=dropout_p, is_causal=True, scale=scale, enable_gqa=enable_gqa)
    logits = (*query.shape[:-1], key.shape[-2])
    if attn_mask is not None:
        pairs = zip(reversed(attn_mask.shape), reversed(logits), strict=False)
        if attn_mask.ndim > len(logits) or not all(size in (1, whole) for size, whole in pairs):
            raise PlanError(f"attn_mask has shape {tuple(attn_mask.shape)}; it must broadcast to {logits}")
    factor = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    worked = torch.float32 if query.dtype in (torch.float16, torch.bfloat16) and query.device.type == "cpu" else None
    if sinks is not None:
        if sinks.shape != (heads := query.shape[-3] if query.ndim > 2 else 1,):
            raise PlanError(f"sinks must have one logit for each of {heads} heads, not shape {tuple(sinks.shape)}")
        sinks = sinks[:, None, None] if query.ndim > 2 else sinks[:, None]
    q, k, v = (x.to(worked or x.dtype) for x in (query, key, value))
    kept = None  # the factor of the weights: 0 with the given probability, else 1 / (1 - dropout_p)
    if dropout_p:
        shape = (*torch.broadcast_shapes(q.shape[:-3], k.shape[:-3]), *q.shape[-3:-1], k.shape[-2])
        kept = (torch.rand(shape, dtype=q.dtype, device=q.device) >= dropout_p).to(q.dtype) / (1 - dropout_p)
    if torch.compiler.is_compiling() or is_transformed():
        out, weights = attention_graph(q, k, v, attn_mask, sinks, kept, factor, text)
    else:
        out, weights = CausalAttention.apply(q, k, v, attn_mask, sinks, kept, factor, text)
    out = out.to(query.dtype)
    return (out, weights.detach().to(query.dtype)) if need_weights else out


def pays(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Return whether materialised products should beat fused attention: long, wide, float32 or float64, on the CPU.

    The planner is not used: `torch.compile` traces this, and attention is not one product but several and a softmax.
    """
    length = min(query.shape[-2], key.shape[-2])
    width = min(query.shape[-1], value.shape[-1])
    wide = query.dtype in (torch.float32, torch.float64)
    return query.device.type == "cpu" and wide and length * width >= LEAST_WORK


def _check(query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, enable_gqa: bool) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.ndim < 2:
            raise PlanError(f"{name} has {tensor.ndim} dimensions; it needs at least (length, head size)")
        if not tensor.is_floating_point() or tensor.dtype != query.dtype:
            raise PlanError(f"{name} is {tensor.dtype} and query {query.dtype}; convert one to a common floating dtype")
    if not is_causal:
        raise PlanError("this is causal attention; without the mask use scaled_dot_product_attention")
    if not 0.0 <= dropout_p < 1.0:
        raise PlanError(f"dropout_p must be at least 0 and below 1, not {dropout_p}")
    if query.shape[-1] != key.shape[-1]:
        raise PlanError(f"query has head size {query.shape[-1]} and key {key.shape[-1]}; they must be the same")
    if key.shape[-2] != value.shape[-2]:
        raise PlanError(f"key has {key.shape[-2]} rows and value {value.shape[-2]}; they must be the same")
    if key.shape[:-2] != value.shape[:-2]:
        raise PlanError(f"key and value have leading sizes {tuple(key.shape[:-2])} and {tuple(value.shape[:-2])}")
    heads, shared = (x.shape[-3] if x.ndim > 2 else 1 for x in (query, key))
    if query.shape[:-3] != key.shape[:-3] or query.ndim != key.ndim:
        raise PlanError(f"query and key have leading sizes {tuple(query.shape[:-2])} and {tuple(key.shape[:-2])}")
    if heads != shared and not (enable_gqa and shared and heads % shared == 0):
        raise PlanError(f"{heads} heads of query and {shared} of key; set enable_gqa if each of key's serves several")


class CausalAttention(torch.autograd.Function):
    """Attention that works in place: two matrices of the size of the scores are allocated at a time."""

    @staticmethod
    def forward(ctx, query, key, value, bias, sinks, kept, factor, strategy):
        weights = causal_scores(triangular_mm, query * factor, key, strategy)
        sunk = softmax_rows(weights, bias, sinks)
        dropped = weights if kept is None else weights * kept
        ctx.save_for_backward(query, key, value, bias, sinks, weights, kept, sunk)
        ctx.factor, ctx.strategy = factor, strategy
        ctx.mark_non_differentiable(dropped)
        return values(triangular_mm, dropped, value, strategy), dropped

    @staticmethod
    def backward(ctx, grad, _):
        query, key, value, bias, sinks, weights, kept, sunk = ctx.saved_tensors
        needs = ctx.needs_input_grad
        if torch.is_grad_enabled():  # create_graph: this backward pass is differentiated itself
            # Views: an operand may have been computed from another one, or be the same tensor.
            operands: list[Any] = [x if x is None else x.view_as(x) for x in (query, key, value, bias, sinks)]
            query, key, value, bias, sinks = operands
            out, _ = attention_graph(query, key, value, bias, sinks, kept, ctx.factor, ctx.strategy)
            asked = [x for x, needed in zip(operands, needs, strict=False) if needed]
            found = iter(torch.autograd.grad(out, asked, grad, create_graph=True))
            return *(next(found) if needed else None for needed in needs[:5]), None, None, None
        grad_value = grad_key = None
        if needs[2]:
            dropped = weights if kept is None else weights * kept
            grad_value = sum_to(transposed_values(triangular_mm, dropped, grad, ctx.strategy), value)
        scores = causal_scores(triangular_mm, grad, value, ctx.strategy)
        if kept is not None:
            scores *= kept
        means = softmax_backward(scores, weights)
        grad_query = values(triangular_mm, scores, key, ctx.strategy).mul_(ctx.factor) if needs[0] else None
        if needs[1]:
            grad_key = sum_to(transposed_values(triangular_mm, scores, query, ctx.strategy), key).mul_(ctx.factor)
        grad_bias = scores.sum_to_size(bias.shape).to(bias.dtype) if needs[3] else None
        grad_sinks = -(sunk * means).sum_to_size(sinks.shape) if needs[4] else None
        return grad_query, grad_key, grad_value, grad_bias, grad_sinks, None, None, None


def attention_graph(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    sinks: Tensor | None,
    kept: Tensor | None,
    factor: float,
    strategy: str | None,
) -> tuple[Tensor, Tensor]:
    """Return the output and the weights after dropout; `kept` multiplies the weights.

    For compilers and higher derivatives; several matrices of the size of the scores are allocated at a time.
    """
    weights = causal_softmax(causal_scores(triangular_mm, query * factor, key, strategy), bias, sinks)
    dropped = weights if kept is None else weights * kept
    return values(triangular_mm, dropped, value, strategy), dropped


def causal_softmax(scores: Tensor, bias: Tensor | None, sinks: Tensor | None) -> Tensor:
    """Compute the softmax of rows (..., H, Lq, Lk) below the diagonal, zero above; `sinks` (H, 1, 1) have no column.

    A fully masked row is zero.
    """
    rows, cols = scores.shape[-2:]
    seen = torch.ones(rows, cols, dtype=torch.bool, device=scores.device).tril()
    if bias is not None:
        if bias.dtype == torch.bool:
            seen = seen & bias
        else:
            scores = scores + torch.where(seen, bias, 0).to(scores.dtype)
    scores = torch.where(seen, scores, -math.inf)
    top = scores.detach().amax(-1, keepdim=True) if cols else scores.new_zeros((*scores.shape[:-1], 1))
    logits = None
    if sinks is not None:
        logits = sinks.to(scores.dtype)
        top = torch.maximum(top, logits.detach())
    top = torch.where(top == -math.inf, 0.0, top)
    parts = torch.exp(scores - top)
    total = parts.sum(-1, keepdim=True)
    if logits is not None:
        total = total + torch.exp(logits - top)
    return parts / torch.where(total == 0, 1.0, total)


def softmax_rows(scores: Tensor, bias: Tensor | None, sinks: Tensor | None) -> Tensor | None:
    """Convert scores (..., H, Lq, Lk) below the diagonal to weights, in place; zero above.

    If there are sinks (H, 1, 1), return the fraction of every row's softmax that belongs to its sink, (..., H, Lq, 1).
    """
    rows, cols = scores.shape[-2:]
    if bias is not None:
        bias = bias.broadcast_to(scores.shape)
    sunk = None
    if sinks is not None:
        sinks = sinks.to(scores.dtype)
        sunk = scores.new_empty((*scores.shape[:-1], 1))
    for start in range(0, rows, ROWS):
        stop = min(start + ROWS, rows)
        reach = min(stop, cols)
        part = scores[..., start:stop, :reach]
        if bias is not None:
            some = bias[..., start:stop, :reach]
            if some.dtype == torch.bool:
                part.masked_fill_(~some, -math.inf)
            else:
                part += some
        if reach > start:
            future = torch.ones(stop - start, reach - start, dtype=torch.bool, device=scores.device).triu_(1)
            part[..., start:].masked_fill_(future, -math.inf)
        if not reach:
            continue
        top = part.amax(-1, keepdim=True)
        if sinks is not None:
            top = torch.maximum(top, sinks)
        top.masked_fill_(top == -math.inf, 0.0)  # a fully masked row: its weights are zero
        part.sub_(top).exp_()
        total = part.sum(-1, keepdim=True)
        if sinks is not None and sunk is not None:
            extra = torch.exp(sinks - top)
            total += extra
            sunk[..., start:stop, :] = extra / total
        total.masked_fill_(total == 0, 1.0)
        part.div_(total)
    return sunk


def softmax_backward(grad: Tensor, weights: Tensor) -> Tensor:
    """Convert the gradient of the weights to that of the scores, in place; return sum_j W_ij dW_ij, (..., Lq, 1)."""
    rows, cols = grad.shape[-2:]
    means = grad.new_zeros((*grad.shape[:-1], 1))
    for start in range(0, rows, ROWS):
        stop = min(start + ROWS, rows)
        reach = min(stop, cols)
        part, some = grad[..., start:stop, :reach], weights[..., start:stop, :reach]
        part *= some
        means[..., start:stop, :] = mean = part.sum(-1, keepdim=True)
        torch.addcmul(part, some, mean, value=-1, out=part)
    return means
