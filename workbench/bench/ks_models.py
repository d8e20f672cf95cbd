"""Transformers whose linear layers are dense or Kronecker-sparse. Imports torch.

Source of sizes and patterns: Gonon, Zheng, Carrivain, Le, "Fast Inference with Kronecker-Sparse Matrices" (ICML 2025),
appendix E.8; there the factors of the down projection are listed right-most first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ...kernels.structured.blocks import empty_result, is_batch_first
from ...kernels.torch.kronecker_layers import KSFeedForward, KSLinear
from .baselines.kronecker import by_bmm
from .transformers import Build, Residual, Sizes, Transformer
from .transformers import dense as dense_layers

DENSE, OURS, BMM = "dense", "auto", "bmm"
"""Variants of layers with patterns: dense, Kronecker-sparse by the planner's choice, or by the permuted bmm."""

SQUARES = ("q", "k", "v", "o")

_SQUARE, _UP = ((1, 192, 48, 2), (2, 48, 192, 1)), ((1, 768, 192, 2), (6, 64, 64, 1))
VIT_S = Sizes(
    *(384, 6, 4 * 384, 12, 196, 128, False),
    layers=dict.fromkeys(SQUARES, _SQUARE) | {"up": _UP, "down": ((1, 128, 128, 3), (6, 64, 256, 1))},
)
"""ViT-S/16 on 224 x 224 images, without the patch embedding and the head. `layers` are patterns by place, left-most
factor first."""

GPT2_MEDIUM = Sizes(1024, 16, 4096, 24, 1024, 8, layers={"down": ((1, 64, 256, 16), (64, 64, 64, 1))})
"""GPT-2 medium without embeddings; the paper replaces its down projections alone and gives no sizes of its batch."""

VISION: Mapping[str, Sizes] = {
    name: Sizes(features, heads, 4 * features, blocks, tokens, 128, False)
    for name, features, heads, blocks, tokens in (
        ("vit-s/16", 384, 6, 12, 196),
        ("vit-b/16", 768, 12, 12, 196),
        ("vit-l/16", 1024, 16, 24, 196),
        ("vit-h/14", 1280, 16, 32, 256),
    )
}
"""Dense vision transformers on 128 images of 224 x 224, without the patch embedding and the head."""


class PermutedLinear(KSLinear):
    """A batch-first layer that multiplies by permuted batched GEMMs, without gradients."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.reshape(-1, self.in_features).T
        for weights, pattern in zip(reversed(self.weights()), reversed(self.structure.patterns), strict=True):
            product = empty_result(y, pattern.rows, is_batch_first(y))
            by_bmm(weights.detach(), pattern, y, product)
            y = product
        rows = y.T if self.bias is None else y.T + self.bias.to(y.dtype)
        return rows.reshape(*x.shape[:-1], self.out_features)


def build(sizes: Sizes, kind: str, **where: Any) -> Build:
    """Builds layers with biases, dense where a place has no patterns."""
    dense = dense_layers(bias=True, **where)

    def linear(place: str, inputs: int, outputs: int) -> nn.Module:
        patterns = sizes.layers.get(place)
        if patterns is None or kind == DENSE:
            return dense(place, inputs, outputs)
        return (KSLinear if kind == OURS else PermutedLinear)(list(patterns), **where)

    return linear


def part_of(sizes: Sizes, part: str, kind: str, **where: Any) -> nn.Module:
    """A layer ("square", "up", "down"), "attention", "ffn" (with norm and residual), a "block", or the "full" model.

    Feed-forward layers are batch-last in between where both are Kronecker-sparse by our choice.
    """
    linear, n, layers = build(sizes, kind, **where), sizes.features, sizes.layers
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
