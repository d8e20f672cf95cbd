"""Transformers with random weights whose linear layers are dense or Kronecker-sparse. Imports torch.

Source of sizes and patterns: Gonon, Zheng, Carrivain, Le, "Fast Inference with Kronecker-Sparse Matrices" (ICML 2025),
appendix E.8; there the factors of the down projection are listed right-most first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ...kernels.structured.blocks import empty_result, is_batch_first
from ...kernels.torch.kronecker_layers import KSFeedForward, KSLinear
from .baselines.permuted import by_bmm
from .transformer_blocks import Attention, FeedForward, Residual

Patterns = tuple[tuple[int, int, int, int], ...] | None
"""Patterns of a layer, left-most factor first; None: the layer stays dense."""

DENSE, OURS, BMM = "dense", "auto", "bmm"
"""Variants of layers with patterns: dense, Kronecker-sparse by the planner's choice, or by the permuted bmm."""


@dataclass(frozen=True)
class Sizes:
    """A transformer: features, heads, blocks, the sequence, and the patterns of its layers."""

    features: int
    heads: int
    blocks: int
    batch: int
    tokens: int
    causal: bool
    square: Patterns = None
    up: Patterns = None
    down: Patterns = None


VIT_S = Sizes(
    *(384, 6, 12, 128, 196, False),
    square=((1, 192, 48, 2), (2, 48, 192, 1)),
    up=((1, 768, 192, 2), (6, 64, 64, 1)),
    down=((1, 128, 128, 3), (6, 64, 256, 1)),
)
"""ViT-S/16 on 224 x 224 images, without the patch embedding and the head."""

GPT2_MEDIUM = Sizes(1024, 16, 24, 8, 1024, True, down=((1, 64, 256, 16), (64, 64, 64, 1)))
"""GPT-2 medium without embeddings; the paper replaces its down projections alone and gives no sizes of its batch."""


VISION: Mapping[str, Sizes] = {
    name: Sizes(features, heads, blocks, 128, tokens, False)
    for name, features, heads, blocks, tokens in (
        ("vit-s/16", 384, 6, 12, 196),
        ("vit-b/16", 768, 12, 12, 196),
        ("vit-l/16", 1024, 16, 24, 196),
        ("vit-h/14", 1280, 16, 32, 256),
    )
}
"""Dense vision transformers on 128 images of 224 x 224, without the patch embedding and the head."""


def feed_forward_layers(sizes: Sizes, **where: Any) -> nn.Module:
    """The linear layers of all feed-forward parts, one after the other, without biases and activations."""
    n = sizes.features
    pairs = [(n, 4 * n), (4 * n, n)] * sizes.blocks
    return nn.Sequential(*(nn.Linear(cols, rows, bias=False, **where) for cols, rows in pairs))


def linear(cols: int, rows: int, patterns: Patterns, kind: str, **where: Any) -> nn.Module:
    """A layer of so many inputs and outputs, dense without patterns."""
    if patterns is None or kind == DENSE:
        return nn.Linear(cols, rows, **where)
    return KSLinear(list(patterns), **where) if kind == OURS else PermutedLinear(list(patterns), **where)


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


def attention(sizes: Sizes, kind: str, **where: Any) -> Attention:
    """Multi-head attention: query, key, value and output projections by square layers."""
    n = sizes.features
    *inputs, output = (linear(n, n, sizes.square, kind, **where) for _ in range(4))
    return Attention(n // sizes.heads, sizes.causal, output, *inputs)


def feed_forward(sizes: Sizes, kind: str, **where: Any) -> nn.Module:
    """x + down(gelu(up(norm(x)))); batch-last in between where both layers are Kronecker-sparse by our choice."""
    n = sizes.features
    if kind == OURS and sizes.up and sizes.down:
        return KSFeedForward(list(sizes.up), list(sizes.down), **where)
    layers = linear(n, 4 * n, sizes.up, kind, **where), linear(4 * n, n, sizes.down, kind, **where)
    return Residual(nn.LayerNorm(n, **where), FeedForward(*layers))


def block(sizes: Sizes, kind: str, **where: Any) -> nn.Module:
    """One block: attention and the feed-forward layers, each after a norm and with a residual."""
    attended = Residual(nn.LayerNorm(sizes.features, **where), attention(sizes, kind, **where))
    return nn.Sequential(attended, feed_forward(sizes, kind, **where))


def model(sizes: Sizes, kind: str, **where: Any) -> nn.Module:
    """All blocks."""
    return nn.Sequential(*(block(sizes, kind, **where) for _ in range(sizes.blocks)))


def copy_parameters(source: nn.Module, target: nn.Module) -> None:
    """Give one module the parameters of another one that lists the same shapes in the same order."""
    with torch.no_grad():
        for mine, other in zip(target.parameters(), source.parameters(), strict=True):
            mine.copy_(other)
