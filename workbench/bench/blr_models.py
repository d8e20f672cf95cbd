"""Transformers with random weights whose linear layers are dense or block low-rank. Imports torch.

Sizes are those of the models that the block low-rank paper evaluates, layers and ranks those of its Table 3; embeddings
and heads are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from ...kernels.torch.block_low_rank_layers import layer_of
from .blr_layers import TABLE, BlrLayer
from .transformers import Attention, Block, FeedForward, Transformer

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

    def layer(self, place: str) -> BlrLayer | None:
        """The row of a layer by its place in a block; None where it stays dense."""
        name = self.rows.get(place)
        return next((row for row in TABLE if (row.model, row.name) == (self.model, name)), None)


LLAMA_7B = {"q": "qkvo", "k": "qkvo", "v": "qkvo", "o": "qkvo", "gate": "gate_up", "up": "gate_up", "down": "down"}
LLAMA_1B = {"q": "qo", "o": "qo", "gate": "gate", "up": "up", "down": "down"}
GPT = {"qkv": "c_attn", "up": "c_fc", "down": "c_proj"}
VIT = {"qkv": "qkv", "up": "fc1", "down": "fc2"}
DIT = {"qkv": "qkv", "up": "fc1", "modulation": "adaLN"}

MODELS = {
    "llama-7b": Sizes("Llama-7B", 4096, 32, 4096, 32, 8192, True, 11008, LLAMA_7B, gated=True),
    "llama-3.2-1b": Sizes("Llama-3.2-1B", 2048, 32, 512, 16, 8192, True, 8192, LLAMA_1B, gated=True),
    "gpt2-s": Sizes("GPT2-S", 768, 12, 768, 12, 1024, True, 3072, GPT),
    "vit-b": Sizes("ViT-B", 768, 12, 768, 12, 8 * 197, False, 3072, VIT),
    "dit-xl/2": Sizes("DiT-XL/2", 1152, 16, 1152, 28, 1024, False, 4608, DIT, modulated=True),
}
"""The models; Llama-3.2-1B has 16 blocks, and its keys and values stay dense."""


def linear(sizes: Sizes, kind: str, place: str, inputs: int, outputs: int, **where: Any) -> nn.Module:
    """A layer of a block, dense where the kind is, or where the table has none for its place."""
    row = None if kind == DENSE else sizes.layer(place)
    structure = None if row is None else row.structure(kind)
    if structure is None:
        return nn.Linear(inputs, outputs, bias=False, **where)
    if (structure.cols, structure.rows) != (inputs, outputs):
        raise ValueError(f"{place} of {sizes.model} is {inputs} to {outputs}; {structure.name} is not")
    return layer_of(structure, bias=False, **where)


def block(sizes: Sizes, kind: str, **where: Any) -> Block:
    """One block; queries, keys and values are one layer where a row of the table says so."""
    n, hidden = sizes.features, sizes.hidden

    def of(place: str, inputs: int, outputs: int) -> nn.Module:
        return linear(sizes, kind, place, inputs, outputs, **where)

    places = {"qkv": 3 * n} if "qkv" in sizes.rows else {"q": n, "k": sizes.kv, "v": sizes.kv}
    inputs = [of(place, n, wide) for place, wide in places.items()]
    attention = Attention(n // sizes.heads, sizes.causal, of("o", n, n), *inputs)
    gate = of("gate", n, hidden) if sizes.gated else None
    feed_forward = FeedForward(of("up", n, hidden), of("down", hidden, n), gate)
    norm = partial(nn.RMSNorm if sizes.gated else nn.LayerNorm, n, **where)
    return Block(norm, attention, feed_forward, of("modulation", n, 6 * n) if sizes.modulated else None)


def transformer(sizes: Sizes, kind: str, blocks: int, **where: Any) -> Transformer:
    """So many blocks."""
    return Transformer(blocks, partial(block, sizes, kind, **where))
