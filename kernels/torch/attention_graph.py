"""Causal attention on triangular products in differentiable pieces, for compilers and higher derivatives."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .causal import causal_pv, causal_qk


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

    Several matrices of the size of the scores are allocated at a time; the function of
    `attention.py`, which works in place, has two.
    """
    weights = causal_softmax(causal_qk(query * factor, key, strategy), bias, sinks)
    dropped = weights if kept is None else weights * kept
    return causal_pv(dropped, value, strategy), dropped


def causal_softmax(scores: Tensor, bias: Tensor | None, sinks: Tensor | None) -> Tensor:
    """Compute the softmax of rows (..., H, Lq, Lk) below the diagonal, zero above; `sinks` (H,) have no column.

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
        logits = (sinks if scores.ndim == 2 else sinks[:, None])[..., None].to(scores.dtype)
        top = torch.maximum(top, logits.detach())
    top = torch.where(top == -math.inf, 0.0, top)
    parts = torch.exp(scores - top)
    total = parts.sum(-1, keepdim=True)
    if logits is not None:
        total = total + torch.exp(logits - top)
    return parts / torch.where(total == 0, 1.0, total)
