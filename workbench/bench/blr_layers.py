"""The layers of the block low-rank paper: models, sizes, ranks and numbers of blocks.

Source: Abillama et al., "Memory-Efficient Acceleration of Block Low-Rank Foundation Models on Resource Constrained
GPUs", Table 3. Its Monarch rank is r = r' b, r' being the rank of a block.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...kernels.block_low_rank import Blast, LowRank, Monarch
from ...kernels.structured.block_low_rank import BlockLowRank

KINDS = ("low-rank", "monarch", "blast")

Sized = tuple[int, int]
"""A rank r and a number of blocks b."""


@dataclass(frozen=True)
class BlrLayer:
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


ROWS = """
Llama-7B     qkvo    4096  4096  1024 1024/16 16
Llama-7B     gate_up 4096  11008 1488 1536/16 16
Llama-7B     down    11008 4096  1488 1536/16 16
Llama-3.2-1B qo      2048  2048  256  256/16  16
Llama-3.2-1B gate    2048  8192  512  512/16  16
Llama-3.2-1B up      2048  8192  768  768/16  16
Llama-3.2-1B down    8192  2048  768  768/16  16
GPT2-S       c_attn  768   2304  192  192/4   6
GPT2-S       c_fc    768   3072  192  192/4   6
GPT2-S       c_proj  3072  768   192  192/4   6
ViT-B        qkv     768   2304  128  128/4   3
ViT-B        fc1     768   3072  128  128/4   3
ViT-B        fc2     3072  768   128  128/4   3
DiT-XL/2     qkv     1152  3456  384  -       9
DiT-XL/2     fc1     1152  4608  256  -       9
DiT-XL/2     adaLN   1152  6912  256  -       9
"""
"""Model, layer, inputs, outputs, rank, Monarch's rank and blocks, and BLAST's blocks, whose rank is the same."""


def _layer(line: str) -> BlrLayer:
    model, name, *sizes, monarch, blocks = line.split()
    inputs, outputs, rank = map(int, sizes)
    of_monarch = None if monarch == "-" else (int(monarch.split("/")[0]), int(monarch.split("/")[1]))
    return BlrLayer(model, name, inputs, outputs, rank, of_monarch, (rank, int(blocks)))


TABLE = tuple(map(_layer, ROWS.split("\n")[1:-1]))
"""All 16 rows. DiT has no Monarch; k and v of Llama-3.2-1B stay dense."""


def layer(model: str, name: str) -> BlrLayer:
    """The row of a model's layer."""
    return next(one for one in TABLE if (one.model, one.name) == (model, name))
