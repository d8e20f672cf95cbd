"""Stacks of transformer blocks with random weights, of the widths of three large models. Imports torch.

The layers are those of `kernels.planning.workloads`. Rotary embeddings, embeddings and heads are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .transformers import Attention, AttentionCore, Block, FeedForward, heads_of


def linear(inputs: int, outputs: int, **where: Any) -> nn.Linear:
    """A layer without bias whose outputs have the variance of its inputs."""
    layer = nn.Linear(inputs, outputs, bias=False, **where)
    nn.init.normal_(layer.weight, std=inputs**-0.5)
    return layer


class LatentAttention(nn.Module):
    """Multi-head latent attention: queries, and keys with values, through narrow projections.

    A head has `plain` elements of its own key and `shared` ones that all heads share; its value has `plain`.
    """

    def __init__(
        self, features: int, heads: int, query: int, latent: int, plain: int, shared: int, **where: Any
    ) -> None:
        super().__init__()
        self.heads, self.sizes, self.widths = heads, (latent, shared), (plain + shared, 2 * plain)
        self.q_a, self.q_b = linear(features, query, **where), linear(query, heads * (plain + shared), **where)
        self.kv_a, self.kv_b = linear(features, latent + shared, **where), linear(latent, heads * 2 * plain, **where)
        self.q_norm, self.kv_norm = nn.RMSNorm(query, **where), nn.RMSNorm(latent, **where)
        self.o = linear(heads * plain, features, **where)
        self.core = AttentionCore(causal=True)

    def forward(self, x: Tensor) -> Tensor:
        latent, shared = self.kv_a(x).split(self.sizes, -1)
        q = heads_of(self.q_b(self.q_norm(self.q_a(x))), self.widths[0])
        own, v = heads_of(self.kv_b(self.kv_norm(latent)), self.widths[1]).chunk(2, -1)
        k = torch.cat((own, shared.unsqueeze(1).expand(-1, self.heads, -1, -1)), -1)
        result: Tensor = self.o(self.core(q, k, v))
        return result


class ParallelBlock(nn.Module):
    """x + linear2(attention beside gelu), both from one projection of the normalised x."""

    def __init__(self, features: int, heads: int, hidden: int, **where: Any) -> None:
        super().__init__()
        self.width, self.sizes = features // heads, (features, features, features, hidden)
        self.norm = nn.RMSNorm(features, **where)
        self.linear1 = linear(features, sum(self.sizes), **where)
        self.linear2 = linear(features + hidden, features, **where)
        self.core = AttentionCore(causal=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v, wide = self.linear1(self.norm(x)).split(self.sizes, -1)
        mixed = self.core(*(heads_of(one, self.width) for one in (q, k, v)))
        result: Tensor = x + self.linear2(torch.cat((mixed, functional.gelu(wide, approximate="tanh")), -1))
        return result


def attention(features: int, heads: int, kv_heads: int, width: int, **where: Any) -> Attention:
    """Attention with fewer heads of keys and values than of queries, its result gated by a sigmoid."""
    inputs = [linear(features, wide * width, **where) for wide in (2 * heads, kv_heads, kv_heads)]
    return Attention(width, True, linear(heads * width, features, **where), *inputs, gated=True)


def gated(features: int, hidden: int, **where: Any) -> FeedForward:
    """down(silu(gate(x)) * up(x))."""
    gate, up = linear(features, hidden, **where), linear(features, hidden, **where)
    return FeedForward(up, linear(hidden, features, **where), gate)


def block(features: int, attention: nn.Module, feed_forward: nn.Module, **where: Any) -> Block:
    """A block with RMS norms."""
    return Block(partial(nn.RMSNorm, features, **where), attention, feed_forward)


def double_block(features: int, heads: int, hidden: int, **where: Any) -> Block:
    """Attention over a whole sequence with one projection for queries, keys and values, and fc2(gelu(fc1(x)))."""
    inputs, output = linear(features, 3 * features, **where), linear(features, features, **where)
    layers = linear(features, hidden, **where), linear(hidden, features, **where)
    mixed = Attention(features // heads, False, output, inputs)
    return block(features, mixed, FeedForward(*layers, approximate="tanh"), **where)


def deepseek_block(**where: Any) -> nn.Module:
    """A dense block of DeepSeek-R1."""
    return block(7168, LatentAttention(7168, 128, 1536, 512, 128, 64, **where), gated(7168, 18432, **where), **where)


def qwen_block(**where: Any) -> nn.Module:
    """A block of Qwen3.5-397B with full attention; its experts are one layer as wide as the 11 that a token passes."""
    return block(4096, attention(4096, 32, 2, 256, **where), gated(4096, 11 * 1024, **where), **where)


def hunyuan_block(**where: Any) -> nn.Module:
    """A double block of HunyuanVideo, of one stream, and two single blocks: the model has 20 and 40."""
    singles = (ParallelBlock(3072, 24, 12288, **where) for _ in range(2))
    return nn.Sequential(double_block(3072, 24, 12288, **where), *singles)


@dataclass(frozen=True)
class Stack:
    """Features of a model, what builds its repeated part, and how many of them a row runs."""

    features: int
    build: Callable[..., nn.Module]
    count: int

    def model(self, count: int | None = None, **where: Any) -> nn.Module:
        """x (batch, tokens, features) to the same shape."""
        return nn.Sequential(*(self.build(**where) for _ in range(count or self.count)))


STACKS: Mapping[str, Stack] = {
    "deepseek-r1": Stack(7168, deepseek_block, 1),
    "qwen3.5-397b": Stack(4096, qwen_block, 2),
    "hunyuanvideo": Stack(3072, hunyuan_block, 1),
}
"""The models, with as few blocks as give products of every kind: more would change no ratio."""
