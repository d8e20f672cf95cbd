"""The layers of the block low-rank paper: models, sizes, ranks and numbers of blocks.

Source: Abillama et al., "Memory-Efficient Acceleration of Block Low-Rank Foundation Models on Resource Constrained
GPUs", Table 3. Its Monarch rank is r = r' b, r' being the rank of a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...kernels.structured.block_low_rank import BlockLowRank

KINDS = ("low-rank", "monarch", "blast")

Sized = tuple[int, int]
"""A rank r and a number of blocks b."""


@dataclass(frozen=True)
class Layer:
    """A row of the table: sizes, and rank and blocks by kind (None: the paper has none)."""

    model: str
    name: str
    inputs: int
    outputs: int
    rank: int
    monarch: Sized | None
    blast: Sized

    def structure(self, kind: str) -> BlockLowRank | None:
        """The structure of a kind; None where the table has none."""
        from ...kernels.block_low_rank import Blast, LowRank, Monarch

        if kind == "low-rank":
            return LowRank(self.outputs, self.inputs, self.rank)
        sized = self.monarch if kind == "monarch" else self.blast
        if sized is None:
            return None
        rank, b = sized
        if kind == "monarch":
            return Monarch(self.outputs, self.inputs, b, b, rank // b)
        return Blast(self.outputs, self.inputs, b, b, rank)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The numbers of inputs that are timed: adaLN takes a single one, DiT up to 16384."""
        if self.name == "adaLN":
            return (1,)
        return (1, 1024, 8192, 16384) if self.model == "DiT-XL/2" else (1, 1024, 8192)


def _layers(model: str, b_monarch: int | None, b_blast: int, *rows: tuple[str, int, int, int, int]) -> Iterator[Layer]:
    for name, inputs, outputs, rank, rank_monarch in rows:
        monarch = None if b_monarch is None else (rank_monarch, b_monarch)
        yield Layer(model, name, inputs, outputs, rank, monarch, (rank, b_blast))


TABLE = (
    *_layers(
        "Llama-7B",
        16,
        16,
        ("qkvo", 4096, 4096, 1024, 1024),
        ("gate_up", 4096, 11008, 1488, 1536),
        ("down", 11008, 4096, 1488, 1536),
    ),
    *_layers(
        "Llama-3.2-1B",
        16,
        16,
        ("qo", 2048, 2048, 256, 256),
        ("gate", 2048, 8192, 512, 512),
        ("up", 2048, 8192, 768, 768),
        ("down", 8192, 2048, 768, 768),
    ),
    *_layers(
        "GPT2-S",
        4,
        6,
        ("c_attn", 768, 2304, 192, 192),
        ("c_fc", 768, 3072, 192, 192),
        ("c_proj", 3072, 768, 192, 192),
    ),
    *_layers("ViT-B", 4, 3, ("qkv", 768, 2304, 128, 128), ("fc1", 768, 3072, 128, 128), ("fc2", 3072, 768, 128, 128)),
    *_layers(
        "DiT-XL/2", None, 9, ("qkv", 1152, 3456, 384, 0), ("fc1", 1152, 4608, 256, 0), ("adaLN", 1152, 6912, 256, 0)
    ),
)
"""All 16 rows. DiT has no Monarch; k and v of Llama-3.2-1B stay dense."""


def layer(model: str, name: str) -> Layer:
    """The row of a model's layer."""
    return next(one for one in TABLE if (one.model, one.name) == (model, name))
