"""The layers of papers' benchmarks: those of large models, and block low-rank ones with their ranks and blocks.

Source of the latter: Abillama et al., "Memory-Efficient Acceleration of Block Low-Rank Foundation Models on Resource
Constrained GPUs", Table 3. Its Monarch rank is r = r' b, r' being the rank of a block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...kernels.block_low_rank import Blast, LowRank, Monarch
from ...kernels.structured.block_low_rank import BlockLowRank
from .ks_patterns import GOLDEN
from .table import rows

MODEL_ROWS = range(512, 20481, 512)
"""The values of M that the paper uses for every layer: 24 layers x 40 = 960 products."""


LAYERS = rows("workloads")
"""The 24 layers of FalconGEMM's evaluation (arXiv:2605.06057, section IV): K inputs, N outputs.

The paper counts them (11, 7 and 6) and does not list them: which layers stand here is our choice, their sizes are those
of the sources. `exact`: all figures were published for this very model; else a size is that of its family.
"""


def sample(
    count: int,
    most_rows: int = 8192,
    most_bytes: int = 5 << 30,
    itemsize: int = 4,
    fits: Callable[[int, Any], bool] = lambda m, layer: True,
) -> list[tuple[int, Any]]:
    """Select `count` products (M, layer): cycle through the layers, with values of M spread up to `most_rows`.

    The matrices of a product take at most `most_bytes` in total, and `fits(M, layer)` is true; a layer without
    such an M is skipped.
    """
    taken: list[tuple[int, Any]] = []
    for i in range(min(count, len(LAYERS) * len(MODEL_ROWS))):
        layer = LAYERS[i % len(LAYERS)]
        fitting = [
            m
            for m in MODEL_ROWS
            if m <= most_rows
            and itemsize * (m * layer.k + layer.k * layer.n + m * layer.n) <= most_bytes
            and fits(m, layer)
        ]
        if fitting:
            # Steps of the golden section are evenly distributed for every count, and far from each other.
            taken.append((fitting[int(i * GOLDEN % 1 * len(fitting))], layer))
    return taken


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


TABLE = tuple(BlrLayer(*one) for one in rows("blr_layers"))
"""All 16 rows. DiT has no Monarch; k and v of Llama-3.2-1B stay dense."""


def layer(model: str, name: str) -> BlrLayer:
    """The row of a model's layer."""
    return next(one for one in TABLE if (one.model, one.name) == (model, name))
