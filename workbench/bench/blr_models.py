"""Transformers with random weights whose linear layers are dense or block low-rank. Imports torch.

Sizes are those of the models that the block low-rank paper evaluates, layers and ranks those of its Table 3; embeddings
and heads are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from ...kernels.torch.block_low_rank_layers import layer_of
from .blr_layers import TABLE, Layer

DENSE = "dense"


@dataclass(frozen=True)
class Sizes:
    """A transformer: features, heads, features of keys and values, blocks, inputs at once, and the rows of its layers.

    `gated` models multiply a gate's SiLU by the up projection; `modulated` ones scale and shift by a condition (adaLN).
    `attention` and `feed_forward` name rows of TABLE: the projections that are replaced.
    """

    model: str
    features: int
    heads: int
    kv: int
    blocks: int
    tokens: int
    causal: bool
    hidden: int
    rows: Mapping[str, str]
    gated: bool = False
    modulated: bool = False

    def layer(self, place: str) -> Layer | None:
        """The row of a layer by its place in a block; None where it stays dense."""
        name = self.rows.get(place)
        return next((row for row in TABLE if (row.model, row.name) == (self.model, name)), None)


MODELS = {
    "llama-7b": Sizes(
        "Llama-7B",
        4096,
        32,
        4096,
        32,
        8192,
        True,
        11008,
        {"q": "qkvo", "k": "qkvo", "v": "qkvo", "o": "qkvo", "gate": "gate_up", "up": "gate_up", "down": "down"},
        gated=True,
    ),
    "llama-3.2-1b": Sizes(
        "Llama-3.2-1B",
        2048,
        32,
        512,
        16,
        8192,
        True,
        8192,
        {"q": "qo", "o": "qo", "gate": "gate", "up": "up", "down": "down"},
        gated=True,
    ),
    "gpt2-s": Sizes("GPT2-S", 768, 12, 768, 12, 1024, True, 3072, {"qkv": "c_attn", "up": "c_fc", "down": "c_proj"}),
    "vit-b": Sizes("ViT-B", 768, 12, 768, 12, 8 * 197, False, 3072, {"qkv": "qkv", "up": "fc1", "down": "fc2"}),
    "dit-xl/2": Sizes(
        "DiT-XL/2",
        1152,
        16,
        1152,
        28,
        1024,
        False,
        4608,
        {"qkv": "qkv", "up": "fc1", "modulation": "adaLN"},
        modulated=True,
    ),
}
"""The models; Llama-3.2-1B has 16 blocks, and its keys and values stay dense."""


def linear(sizes: Sizes, place: str, inputs: int, outputs: int, kind: str, **where: Any) -> nn.Module:
    """A layer of a block, dense where the kind is, or where the table has none for its place."""
    row = None if kind == DENSE else sizes.layer(place)
    structure = None if row is None else row.structure(kind)
    if structure is None:
        return nn.Linear(inputs, outputs, bias=False, **where)
    if (structure.cols, structure.rows) != (inputs, outputs):
        raise ValueError(f"{place} of {sizes.model} is {inputs} to {outputs}; {structure.name} is not")
    return layer_of(structure, bias=False, **where)


class Attention(nn.Module):
    """Multi-head attention with separate projections, or with one for queries, keys and values where a row says so."""

    def __init__(self, sizes: Sizes, kind: str, **where: Any) -> None:
        super().__init__()
        n, self.sizes = sizes.features, sizes
        places = {"qkv": 3 * n} if "qkv" in sizes.rows else {"q": n, "k": sizes.kv, "v": sizes.kv}
        self.inputs = nn.ModuleList(linear(sizes, place, n, wide, kind, **where) for place, wide in places.items())
        self.output = linear(sizes, "o", n, n, kind, **where)

    def forward(self, x: Tensor) -> Tensor:
        parts = [one(x) for one in self.inputs]
        parts = list(parts[0].chunk(3, -1)) if len(parts) == 1 else parts
        side = self.sizes.features // self.sizes.heads
        q, k, v = (one.unflatten(-1, (-1, side)).transpose(1, 2) for one in parts)
        grouped = k.shape[1] != q.shape[1]
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.sizes.causal, enable_gqa=grouped)
        result: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return result


class FeedForward(nn.Module):
    """down(gelu(up(x))), or down(silu(gate(x)) up(x))."""

    def __init__(self, sizes: Sizes, kind: str, **where: Any) -> None:
        super().__init__()
        n, hidden = sizes.features, sizes.hidden
        self.gate = linear(sizes, "gate", n, hidden, kind, **where) if sizes.gated else None
        self.up = linear(sizes, "up", n, hidden, kind, **where)
        self.down = linear(sizes, "down", hidden, n, kind, **where)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.up(x)
        inner = functional.gelu(inner) if self.gate is None else functional.silu(self.gate(x)) * inner
        result: Tensor = self.down(inner)
        return result


class Block(nn.Module):
    """Attention and the feed-forward layers, each after a norm, with a residual; modulated by a condition or not."""

    def __init__(self, sizes: Sizes, kind: str, **where: Any) -> None:
        super().__init__()
        n = sizes.features
        norm = nn.RMSNorm if sizes.gated else nn.LayerNorm
        self.norms = nn.ModuleList(norm(n, **where) for _ in range(2))
        self.attention, self.feed_forward = Attention(sizes, kind, **where), FeedForward(sizes, kind, **where)
        self.modulation = linear(sizes, "modulation", n, 6 * n, kind, **where) if sizes.modulated else None

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        if self.modulation is None:
            x = x + self.attention(self.norms[0](x))
            plain: Tensor = x + self.feed_forward(self.norms[1](x))
            return plain
        shift, scale, gate, shift2, scale2, gate2 = self.modulation(functional.silu(condition))[:, None].chunk(6, -1)
        x = x + gate * self.attention(self.norms[0](x) * (1 + scale) + shift)
        result: Tensor = x + gate2 * self.feed_forward(self.norms[1](x) * (1 + scale2) + shift2)
        return result


class Transformer(nn.Module):
    """`blocks` blocks: x (batch, tokens, features) and a condition (batch, features) to (batch, tokens, features)."""

    def __init__(self, sizes: Sizes, kind: str, blocks: int, **where: Any) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(sizes, kind, **where) for _ in range(blocks))

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x, condition)
        return x
