"""Transformers whose linear layers are dense, block low-rank or Kronecker-sparse. Imports torch.

Block low-rank models are those that the paper of `workloads.TABLE` evaluates, with the layers and ranks of its Table 3.
Source of sizes and patterns of Kronecker-sparse ones: Gonon, Zheng, Carrivain, Le, "Fast Inference with
Kronecker-Sparse Matrices" (ICML 2025), appendix E.8; there the factors of the down projection are listed right-most
first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ...kernels.structured.blocks import empty_result, is_batch_first
from ...kernels.torch.block_low_rank_layers import layer_of
from ...kernels.torch.kronecker_layers import KSFeedForward, KSLinear
from .baselines.kronecker import by_bmm, by_factors
from .transformers import Build, Residual, Sizes, Transformer, dense, models
from .workloads import TABLE

DENSE, OURS, BMM = "dense", "auto", "bmm"
"""Variants of layers with patterns: dense, Kronecker-sparse by the planner's choice, or by the permuted bmm."""

MODELS = models("e2e_blr")
"""Block low-rank models; Llama-3.2-1B's keys and values stay dense. `layers` names rows of TABLE."""

KRONECKER = models("e2e_ks")
"""ViT-S/16 on 224 x 224 images, without the patch embedding and the head, and GPT-2 medium without embeddings, of which
the paper replaces the down projections alone and gives no sizes of its batch. `layers` are patterns by place."""

VISION = models("shares")
"""Dense vision transformers on 128 images of 224 x 224, without the patch embedding and the head."""


def replaced(plain: Build, made: Callable[[str], nn.Module | None]) -> Build:
    """Builds the layers that are made for places, `plain` ones where that is None."""

    def linear(place: str, inputs: int, outputs: int) -> nn.Module:
        layer: Any = made(place)
        if layer is None:
            return plain(place, inputs, outputs)
        if (layer.in_features, layer.out_features) != (inputs, outputs):
            raise ValueError(f"{place} is {inputs} to {outputs}, not {layer.in_features} to {layer.out_features}")
        return layer

    return linear


def block_low_rank(sizes: Sizes, kind: str, **where: Any) -> Build:
    """Builds layers of a kind without biases; dense ones where the table has none for a place."""

    def made(place: str) -> nn.Module | None:
        named = (sizes.model, sizes.layers.get(place))
        row = None if kind == DENSE else next((row for row in TABLE if (row.model, row.name) == named), None)
        structure = None if row is None else row.structure(kind)
        return None if structure is None else layer_of(structure, bias=False, **where)

    return replaced(dense(**where), made)


def transformer(sizes: Sizes, kind: str, blocks: int, **where: Any) -> Transformer:
    """So many blocks of a block low-rank model."""
    return Transformer(blocks, partial(sizes.block, block_low_rank(sizes, kind, **where), **where))


class PermutedLinear(KSLinear):
    """A batch-first layer that multiplies by permuted batched GEMMs, without gradients."""

    def forward(self, x: Tensor) -> Tensor:
        given = x.reshape(-1, self.in_features).T
        y = empty_result(given, self.out_features, is_batch_first(given))
        by_factors(by_bmm, self.structure.patterns, str(x.dtype), [one.detach() for one in self.weights()], given, y)
        rows = y.T if self.bias is None else y.T + self.bias.to(y.dtype)
        return rows.reshape(*x.shape[:-1], self.out_features)


def kronecker_sparse(sizes: Sizes, kind: str, **where: Any) -> Build:
    """Builds layers with biases, dense where a place has no patterns."""

    def made(place: str) -> nn.Module | None:
        patterns = None if kind == DENSE else sizes.layers.get(place)
        return None if patterns is None else (KSLinear if kind == OURS else PermutedLinear)(list(patterns), **where)

    return replaced(dense(bias=True, **where), made)


def part_of(sizes: Sizes, part: str, kind: str, **where: Any) -> nn.Module:
    """A part of a Kronecker-sparse model: a layer ("square", "up", "down"), "attention", "ffn" (with norm and
    residual), a "block", or the "full" model.

    Feed-forward layers are batch-last in between where both are Kronecker-sparse by our choice.
    """
    linear, n, layers = kronecker_sparse(sizes, kind, **where), sizes.features, sizes.layers
    if part in ("square", "up", "down"):
        inputs, outputs = {"square": (n, n), "up": (n, sizes.hidden), "down": (sizes.hidden, n)}[part]
        return linear("q" if part == "square" else part, inputs, outputs)
    if part == "attention":
        return sizes.attention(linear)
    if part == "full":
        return Transformer(sizes.blocks, partial(part_of, sizes, "block", kind, **where))
    last = kind == OURS and {"up", "down"} <= layers.keys()
    fused = KSFeedForward(list(layers["up"]), list(layers["down"]), **where) if last else None
    if part == "block":
        return sizes.block(linear, fused, **where)
    return fused or Residual(nn.LayerNorm(n, **where), sizes.feed_forward(linear))


def feed_forward_layers(sizes: Sizes, **where: Any) -> nn.Module:
    """The linear layers of all feed-forward parts, one after the other, without biases and activations."""
    pairs = [(sizes.features, sizes.hidden), (sizes.hidden, sizes.features)] * sizes.blocks
    return nn.Sequential(*(nn.Linear(inputs, outputs, bias=False, **where) for inputs, outputs in pairs))


def copy_parameters(source: nn.Module, target: nn.Module) -> None:
    """Give one module the parameters of another one that lists the same shapes in the same order."""
    with torch.no_grad():
        for mine, other in zip(target.parameters(), source.parameters(), strict=True):
            mine.copy_(other)
