"""Transformers with random weights around any linear layers, by their sizes. Imports torch.

Rotary embeddings, embeddings and heads are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...kernels.structured.pattern import parse_patterns
from .table import rows

Build = Callable[[str, int, int], nn.Module]
"""Builds the linear layer of a place in a block ("qkv", or "q", "k", "v"; "o", "gate", "up", "down", ...) for numbers
of inputs and outputs."""

Norm = Callable[[int], nn.Module]


@dataclass(frozen=True)
class Sizes:
    """A transformer: features, heads, features between the feed-forward layers, blocks, sequences and their tokens.

    `kv` heads of keys and values (0: as many as queries) of `width` features (0: features / heads); `joined`: one layer
    for queries, keys and values; `gated_attention`: its result times the sigmoid of a gate. `gated`: the SiLU of a gate
    times the up projection, else the GELU of that. `modulated` blocks scale and shift by a condition (adaLN). `latent`:
    multi-head latent attention by features of queries, of keys with values, of a head's own key, of one that all heads
    share. `singles`: parallel blocks behind each.
    """

    features: int
    heads: int
    hidden: int
    blocks: int = 1
    tokens: int = 0
    batch: int = 1
    causal: bool = True
    kv: int = 0
    width: int = 0
    joined: bool = False
    gated_attention: bool = False
    gated: bool = False
    modulated: bool = False
    latent: tuple[int, int, int, int] | None = None
    singles: int = 0
    rms: bool = False
    approximate: str = "none"
    model: str = ""
    layers: Mapping[str, Any] = field(default_factory=dict)
    """What replaces the dense layers of places, as a paper lists it: patterns, or a row of its table."""
    suite: str = ""
    name: str = ""

    def block(self, build: Build, feed_forward: nn.Module | None = None, **where: Any) -> nn.Module:
        """One block with its single ones; `feed_forward` has a norm and a residual of its own."""
        norm: Norm = partial(nn.RMSNorm if self.rms else nn.LayerNorm, **where)
        n = self.features
        attended = LatentAttention(self, build, norm) if self.latent else self.attention(build)
        inner = feed_forward or Residual(norm(n), self.feed_forward(build))
        modulation = build("modulation", n, 6 * n) if self.modulated else None
        block = Block(Residual(norm(n), attended), inner, modulation)
        singles = (Residual(norm(n), Parallel(self, build)) for _ in range(self.singles))
        return nn.Sequential(block, *singles) if self.singles else block

    def attention(self, build: Build) -> Attention:
        """Attention with all its layers."""
        n, width = self.features, self.width or self.features // self.heads
        queries, kv = (1 + self.gated_attention) * self.heads * width, (self.kv or self.heads) * width
        places = {"qkv": 3 * n} if self.joined else {"q": queries, "k": kv, "v": kv}
        inputs = [build(place, n, outputs) for place, outputs in places.items()]
        return Attention(width, self.causal, build("o", self.heads * width, n), *inputs, gated=self.gated_attention)

    def feed_forward(self, build: Build) -> FeedForward:
        """The feed-forward layers."""
        n = self.features
        gate = build("gate", n, self.hidden) if self.gated else None
        return FeedForward(build("up", n, self.hidden), build("down", self.hidden, n), gate, self.approximate)


def _layers_of(text: str) -> dict[str, Any]:
    """What stands in a cell for places: names, or lists of Kronecker-sparse patterns, left-most factor first."""
    pairs = (one.split("=") for one in text.split())
    return {place: parse_patterns(what) if what.startswith("(") else what for place, what in pairs}


def models(suite: str) -> dict[str, Sizes]:
    """The transformers of a suite, by name: rows of data/transformers.csv."""
    known = [one._replace(layers=_layers_of(one.layers or ""))._asdict() for one in rows("transformers")]
    stated = ({name: value for name, value in one.items() if value is not None} for one in known)
    return {one["name"]: Sizes(**one) for one in stated if one["suite"] == suite}


class AttentionCore(nn.Module):
    """Scaled dot-product attention of q, k, v (batch, heads, tokens, width): what is timed as attention's share."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        grouped = k.shape[1] != q.shape[1]
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=grouped)
        return mixed.transpose(1, 2).flatten(2)


def heads_of(x: Tensor, width: int) -> Tensor:
    """(batch, tokens, heads * width) to (batch, heads, tokens, width)."""
    return x.unflatten(-1, (-1, width)).transpose(1, 2)


class Attention(nn.Module):
    """Attention with heads of `width` by one layer for queries, keys and values, or by three, and an output layer.

    With `gated` the first of three gives a gate behind the queries, whose sigmoid multiplies the result.
    """

    def __init__(self, width: int, causal: bool, output: nn.Module, *inputs: nn.Module, gated: bool = False) -> None:
        super().__init__()
        self.width, self.gated = width, gated
        self.inputs, self.output, self.core = nn.ModuleList(inputs), output, AttentionCore(causal)

    def forward(self, x: Tensor) -> Tensor:
        parts = [one(x) for one in self.inputs]
        q, k, v = parts[0].chunk(3, -1) if len(parts) == 1 else parts
        q, gate = q.chunk(2, -1) if self.gated else (q, None)
        q, k, v = (heads_of(one, self.width) for one in (q, k, v))
        if self.gated:  # repeated, since not every kernel of torch has groups of heads
            k, v = (one.repeat_interleave(q.shape[1] // k.shape[1], 1) for one in (k, v))
        mixed = self.core(q, k, v)
        return self.output(mixed if gate is None else mixed * torch.sigmoid(gate))


class LatentAttention(nn.Module):
    """Multi-head latent attention: queries, and keys with values, through narrow projections.

    A head has `plain` elements of its own key and `shared` ones that all heads share; its value has `plain`.
    """

    def __init__(self, sizes: Sizes, build: Build, norm: Norm) -> None:
        super().__init__()
        assert sizes.latent is not None
        n, self.heads, (query, latent, plain, shared) = sizes.features, sizes.heads, sizes.latent
        self.sizes, self.widths = (latent, shared), (plain + shared, 2 * plain)
        self.q_a, self.q_b = build("q_a", n, query), build("q_b", query, self.heads * (plain + shared))
        self.kv_a, self.kv_b = build("kv_a", n, latent + shared), build("kv_b", latent, self.heads * 2 * plain)
        self.q_norm, self.kv_norm = norm(query), norm(latent)
        self.o = build("o", self.heads * plain, n)
        self.core = AttentionCore(sizes.causal)

    def forward(self, x: Tensor) -> Tensor:
        latent, shared = self.kv_a(x).split(self.sizes, -1)
        q = heads_of(self.q_b(self.q_norm(self.q_a(x))), self.widths[0])
        own, v = heads_of(self.kv_b(self.kv_norm(latent)), self.widths[1]).chunk(2, -1)
        k = torch.cat((own, shared.unsqueeze(1).expand(-1, self.heads, -1, -1)), -1)
        return self.o(self.core(q, k, v))


class FeedForward(nn.Module):
    """down(gelu(up(x))), or down(silu(gate(x)) up(x)); `approximate` is that of the GELU."""

    def __init__(
        self, up: nn.Module, down: nn.Module, gate: nn.Module | None = None, approximate: str = "none"
    ) -> None:
        super().__init__()
        self.gate, self.up, self.down, self.approximate = gate, up, down, approximate

    def forward(self, x: Tensor) -> Tensor:
        inner = self.up(x)
        if self.gate is None:
            inner = functional.gelu(inner, approximate=self.approximate)
        else:
            inner = functional.silu(self.gate(x)) * inner
        return self.down(inner)


class Parallel(nn.Module):
    """linear2(attention beside gelu), both from one projection of x."""

    def __init__(self, sizes: Sizes, build: Build) -> None:
        super().__init__()
        n, hidden = sizes.features, sizes.hidden
        self.width, self.sizes, self.approximate = n // sizes.heads, (n, n, n, hidden), sizes.approximate
        self.linear1, self.linear2 = build("linear1", n, sum(self.sizes)), build("linear2", n + hidden, n)
        self.core = AttentionCore(sizes.causal)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v, wide = self.linear1(x).split(self.sizes, -1)
        mixed = self.core(*(heads_of(one, self.width) for one in (q, k, v)))
        return self.linear2(torch.cat((mixed, functional.gelu(wide, approximate=self.approximate)), -1))


class Residual(nn.Module):
    """x + inner(norm(x)); with a modulation (shift, scale, gate) x + gate inner(norm(x) (1 + scale) + shift)."""

    def __init__(self, norm: nn.Module, inner: nn.Module) -> None:
        super().__init__()
        self.norm, self.inner = norm, inner

    def forward(self, x: Tensor, modulation: tuple[Tensor, ...] | None = None) -> Tensor:
        if modulation is None:
            return x + self.inner(self.norm(x))
        shift, scale, gate = modulation
        return x + gate * self.inner(self.norm(x) * (1 + scale) + shift)


class Block(nn.Module):
    """Attention, then feed-forward, each with a norm and a residual, which a condition (adaLN) may modulate."""

    def __init__(self, attention: nn.Module, feed_forward: nn.Module, modulation: nn.Module | None = None) -> None:
        super().__init__()
        self.attention, self.feed_forward, self.modulation = attention, feed_forward, modulation

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        if self.modulation is None:
            return self.feed_forward(self.attention(x))
        assert condition is not None
        parts = self.modulation(functional.silu(condition))[:, None].chunk(6, -1)
        return self.feed_forward(self.attention(x, parts[:3]), parts[3:])


class Transformer(nn.Module):
    """Blocks: x (batch, tokens, features), and a condition (batch, features), to (batch, tokens, features)."""

    def __init__(self, count: int, block: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(block() for _ in range(count))

    def forward(self, x: Tensor, *condition: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x, *condition)
        return x


def dense(bias: bool = False, scaled: bool = False, **where: Any) -> Build:
    """Builds dense layers; `scaled`: their outputs have the variance of their inputs."""

    def build(place: str, inputs: int, outputs: int) -> nn.Linear:
        layer = nn.Linear(inputs, outputs, bias=bias, **where)
        if scaled:
            nn.init.normal_(layer.weight, std=inputs**-0.5)
        return layer

    return build
