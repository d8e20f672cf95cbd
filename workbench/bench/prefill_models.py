"""Stacks of transformer blocks with random weights, of the widths of three large models. Imports torch.

The layers are those of `kernels.planning.workloads`. Rotary embeddings, embeddings and heads are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def linear(inputs: int, outputs: int, **where: Any) -> nn.Linear:
    """A layer without bias whose outputs have the variance of its inputs."""
    layer = nn.Linear(inputs, outputs, bias=False, **where)
    nn.init.normal_(layer.weight, std=inputs**-0.5)
    return layer


class AttentionCore(nn.Module):
    """Scaled dot-product attention of q, k, v (batch, heads, tokens, width): what is timed as attention's share."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return mixed.transpose(1, 2).flatten(2)


def heads_of(x: Tensor, heads: int) -> Tensor:
    """(batch, tokens, heads * width) to (batch, heads, tokens, width)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class GatedFeedForward(nn.Module):
    """down(silu(gate(x)) * up(x))."""

    def __init__(self, features: int, hidden: int, **where: Any) -> None:
        super().__init__()
        self.gate, self.up = linear(features, hidden, **where), linear(features, hidden, **where)
        self.down = linear(hidden, features, **where)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.down(functional.silu(self.gate(x)) * self.up(x))
        return result


class LatentAttention(nn.Module):
    """Multi-head latent attention: queries, and keys with values, through narrow projections.

    A head has `plain` elements of its own key and `shared` ones that all heads share; its value has `plain`.
    """

    def __init__(
        self, features: int, heads: int, query: int, latent: int, plain: int, shared: int, **where: Any
    ) -> None:
        super().__init__()
        self.heads, self.sizes, self.shared = heads, (latent, shared), shared
        self.q_a, self.q_b = linear(features, query, **where), linear(query, heads * (plain + shared), **where)
        self.kv_a, self.kv_b = linear(features, latent + shared, **where), linear(latent, heads * 2 * plain, **where)
        self.q_norm, self.kv_norm = nn.RMSNorm(query, **where), nn.RMSNorm(latent, **where)
        self.o = linear(heads * plain, features, **where)
        self.core = AttentionCore(causal=True)

    def forward(self, x: Tensor) -> Tensor:
        latent, shared = self.kv_a(x).split(self.sizes, -1)
        q = heads_of(self.q_b(self.q_norm(self.q_a(x))), self.heads)
        own, v = heads_of(self.kv_b(self.kv_norm(latent)), self.heads).chunk(2, -1)
        k = torch.cat((own, shared.unsqueeze(1).expand(-1, self.heads, -1, -1)), -1)
        result: Tensor = self.o(self.core(q, k, v))
        return result


class GatedAttention(nn.Module):
    """Attention with fewer heads of keys and values than of queries, its result gated by a sigmoid."""

    def __init__(self, features: int, heads: int, kv_heads: int, width: int, **where: Any) -> None:
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.q = linear(features, 2 * heads * width, **where)
        self.k, self.v = (linear(features, kv_heads * width, **where) for _ in range(2))
        self.o = linear(heads * width, features, **where)
        self.core = AttentionCore(causal=True)

    def forward(self, x: Tensor) -> Tensor:
        q, gate = self.q(x).chunk(2, -1)
        # Repeated, since not every kernel of torch has groups of heads.
        k, v = (
            heads_of(one(x), self.kv_heads).repeat_interleave(self.heads // self.kv_heads, 1)
            for one in (self.k, self.v)
        )
        result: Tensor = self.o(self.core(heads_of(q, self.heads), k, v) * torch.sigmoid(gate))
        return result


class Attention(nn.Module):
    """Attention over a whole sequence with one projection for queries, keys and values."""

    def __init__(self, features: int, heads: int, **where: Any) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = linear(features, 3 * features, **where), linear(features, features, **where)
        self.core = AttentionCore(causal=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads_of(one, self.heads) for one in self.qkv(x).chunk(3, -1))
        result: Tensor = self.proj(self.core(q, k, v))
        return result


class FeedForward(nn.Module):
    """fc2(gelu(fc1(x)))."""

    def __init__(self, features: int, hidden: int, **where: Any) -> None:
        super().__init__()
        self.fc1, self.fc2 = linear(features, hidden, **where), linear(hidden, features, **where)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.fc2(functional.gelu(self.fc1(x), approximate="tanh"))
        return result


class ParallelBlock(nn.Module):
    """x + linear2(attention beside gelu), both from one projection of the normalised x."""

    def __init__(self, features: int, heads: int, hidden: int, **where: Any) -> None:
        super().__init__()
        self.heads, self.sizes = heads, (features, features, features, hidden)
        self.norm = nn.RMSNorm(features, **where)
        self.linear1 = linear(features, sum(self.sizes), **where)
        self.linear2 = linear(features + hidden, features, **where)
        self.core = AttentionCore(causal=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v, wide = self.linear1(self.norm(x)).split(self.sizes, -1)
        mixed = self.core(heads_of(q, self.heads), heads_of(k, self.heads), heads_of(v, self.heads))
        result: Tensor = x + self.linear2(torch.cat((mixed, functional.gelu(wide, approximate="tanh")), -1))
        return result


class Block(nn.Module):
    """x + attention, then + feed-forward, each of the normalised x."""

    def __init__(self, features: int, attention: nn.Module, feed_forward: nn.Module, **where: Any) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.norms = nn.ModuleList(nn.RMSNorm(features, **where) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        result: Tensor = x + self.feed_forward(self.norms[1](x))
        return result


def deepseek_block(**where: Any) -> nn.Module:
    """A dense block of DeepSeek-R1."""
    attention = LatentAttention(7168, 128, 1536, 512, 128, 64, **where)
    return Block(7168, attention, GatedFeedForward(7168, 18432, **where), **where)


def qwen_block(**where: Any) -> nn.Module:
    """A block of Qwen3.5-397B with full attention; its experts are one layer as wide as the 11 that a token passes."""
    return Block(4096, GatedAttention(4096, 32, 2, 256, **where), GatedFeedForward(4096, 11 * 1024, **where), **where)


def hunyuan_block(**where: Any) -> nn.Module:
    """A double block of HunyuanVideo, of one stream, and two single blocks: the model has 20 and 40."""
    double = Block(3072, Attention(3072, 24, **where), FeedForward(3072, 12288, **where), **where)
    return nn.Sequential(double, *(ParallelBlock(3072, 24, 12288, **where) for _ in range(2)))


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
