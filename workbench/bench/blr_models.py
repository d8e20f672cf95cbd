"""Transformers whose linear layers are dense or block low-rank. Imports torch.

Sizes are those of the models that the block low-rank paper evaluates, layers and ranks those of its Table 3.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn

from ...kernels.torch.block_low_rank_layers import layer_of
from .blr_layers import TABLE
from .transformers import Build, Sizes, Transformer, dense

DENSE = "dense"

LLAMA_7B = {"q": "qkvo", "k": "qkvo", "v": "qkvo", "o": "qkvo", "gate": "gate_up", "up": "gate_up", "down": "down"}
LLAMA_1B = {"q": "qo", "o": "qo", "gate": "gate", "up": "up", "down": "down"}
GPT = {"qkv": "c_attn", "up": "c_fc", "down": "c_proj"}
VIT = {"qkv": "qkv", "up": "fc1", "down": "fc2"}
DIT = {"qkv": "qkv", "up": "fc1", "modulation": "adaLN"}

_llama = partial(Sizes, gated=True, rms=True)
_other = partial(Sizes, joined=True)

MODELS = {
    "llama-7b": _llama(4096, 32, 11008, 32, 8192, model="Llama-7B", layers=LLAMA_7B),
    "llama-3.2-1b": _llama(2048, 32, 8192, 16, 8192, kv=8, model="Llama-3.2-1B", layers=LLAMA_1B),
    "gpt2-s": _other(768, 12, 3072, 12, 1024, model="GPT2-S", layers=GPT),
    "vit-b": _other(768, 12, 3072, 12, 8 * 197, causal=False, model="ViT-B", layers=VIT),
    "dit-xl/2": _other(1152, 16, 4608, 28, 1024, causal=False, modulated=True, model="DiT-XL/2", layers=DIT),
}
"""The models; Llama-3.2-1B has 16 blocks, and its keys and values stay dense. `layers` names rows of TABLE."""


def build(sizes: Sizes, kind: str, **where: Any) -> Build:
    """Builds layers of a kind; dense ones where the table has none for a place."""
    plain = dense(**where)

    def linear(place: str, inputs: int, outputs: int) -> nn.Module:
        named = (sizes.model, sizes.layers.get(place))
        row = None if kind == DENSE else next((row for row in TABLE if (row.model, row.name) == named), None)
        structure = None if row is None else row.structure(kind)
        if structure is None:
            return plain(place, inputs, outputs)
        if (structure.cols, structure.rows) != (inputs, outputs):
            raise ValueError(f"{place} of {sizes.model} is {inputs} to {outputs}; {structure.name} is not")
        return layer_of(structure, bias=False, **where)

    return linear


def transformer(sizes: Sizes, kind: str, blocks: int, **where: Any) -> Transformer:
    """So many blocks."""
    return Transformer(blocks, partial(sizes.block, build(sizes, kind, **where), **where))
