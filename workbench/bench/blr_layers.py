"""The layers of the block low-rank paper: models, sizes, ranks and numbers of blocks.

Source: Abillama et al., "Memory-Efficient Acceleration of Block Low-Rank Foundation Models on Resource Constrained
GPUs", Table 3. Its Monarch rank is r = r' b, r' being the rank of a block.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...kernels.block_low_rank import Blast, LowRank, Monarch
from ...kernels.structured.block_low_rank import BlockLowRank
from .table import table

KINDS = ("low-rank", "monarch", "blast")

Sized = tuple[int, int]
"""A rank r and a number of blocks b."""


@dataclass(frozen=True)
class BlrLayer:
    """A row of the table: sizes, and rank and blocks by kind (None: the paper has none); BLAST has the rank."""

    model: str
    name: str
    inputs: int
    outputs: int
    rank: int
    monarch: Sized | None
    blast: Sized

    def structure(self, kind: str) -> BlockLowRank | None:
        """The structure of a kind; None where the table has none."""
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


TABLE = table(BlrLayer, "blr_layers")
"""All 16 rows. DiT has no Monarch; k and v of Llama-3.2-1B stay dense."""


def layer(model: str, name: str) -> BlrLayer:
    """The row of a model's layer."""
    return next(one for one in TABLE if (one.model, one.name) == (model, name))
