"""Stacks of transformer blocks of the widths of three large models. Imports torch.

The layers are those of `kernels.planning.workloads`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from .transformers import Sizes, Transformer, dense

STACKS: Mapping[str, Sizes] = {
    "deepseek-r1": Sizes(7168, 128, 18432, latent=(1536, 512, 128, 64), gated=True, rms=True),
    "qwen3.5-397b": Sizes(*(4096, 32, 11 * 1024, 2), kv=2, width=256, gated_attention=True, gated=True, rms=True),
    "hunyuanvideo": Sizes(3072, 24, 12288, causal=False, joined=True, singles=2, rms=True, approximate="tanh"),
}
"""With as few blocks as give products of every kind: more would change no ratio.

A dense block of DeepSeek-R1; blocks of Qwen3.5-397B with full attention, whose experts are one layer as wide as the 11
that a token passes; a double block of HunyuanVideo, of one stream, and two single blocks: the model has 20 and 40.
"""


def stack(sizes: Sizes, count: int | None = None, **where: Any) -> Transformer:
    """So many blocks (None: those of the sizes), dense."""
    return Transformer(count or sizes.blocks, partial(sizes.block, dense(scaled=True, **where), **where))
