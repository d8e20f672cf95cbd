"""Generated sums on a GPU beside a copy, and the launches that they may have beside one another."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ...kernels.arrays import Tensor, torch
from ...kernels.codegen.triton_tiles import candidates
from ...kernels.cuda.level import cuda_level
from ...kernels.cuda.machine import require_device
from ...kernels.dense.arrangements import arrangements, levels_of
from ...kernels.torch.recipe import ProductRecipe
from .case import Figures, Say
from .contest import Call, Contest, CudaClock

LEVELS = {7: 1, 49: 2, 343: 3}
"""Levels of Strassen with so many products."""


class Sums:
    """The sums of A and the merge of C in so many products, with a matrix and a stack of random numbers.

    On the device "meta" they have no data: for `Case.ahead`.
    """

    def __init__(self, dtype: str, rank: int, device: str = "cuda") -> None:
        require_device()
        levels = LEVELS[rank]
        schemes = ProductRecipe(("strassen",) * levels).schemes()
        self.core = cuda_level(arrangements(levels_of(schemes, levels))[0][1])
        size = 8192 if dtype == "float64" else 16384
        self.matrix = torch.randn(1, size, size, device=device).to(getattr(torch, dtype))
        block = size >> levels
        self.stack = torch.randn(1, rank, block, block, device=device).to(self.matrix.dtype)
        self.target = torch.empty_like(self.stack)

    @property
    def sides(self) -> tuple[tuple[str, Any, Tensor], ...]:
        """Name, combination, and the stack that it writes or reads."""
        return ("split", self.core.left, self.target), ("merge", self.core.merge, self.stack)


def _shares(sums: Sums, calls: Mapping[str, Call], rounds: int) -> tuple[float, dict[str, float]]:
    """Bytes a second of a copy, and of splits or merges as shares of it, all in turn."""
    times = Contest({"copy": lambda: sums.target.copy_(sums.stack), **calls}, rounds, CudaClock()).run().medians
    copied, moved = 2 * sums.stack.nbytes / times["copy"], sums.matrix.nbytes + sums.stack.nbytes
    return copied, {name: moved / times[name] / copied for name in calls}


def combine(dtype: str, rank: int, rounds: int, say: Say) -> Figures:
    """Bandwidth of a split and a merge of a matrix, as shares of a copy's, in turn."""
    sums = Sums(dtype, rank)
    calls = {name: partial(side.run, sums.matrix, stack) for name, side, stack in sums.sides}
    copied, shares = _shares(sums, calls, rounds)
    return {
        "copy_tb_s": copied / 1e12,
        **{f"{name}_tb_s": share * copied / 1e12 for name, share in shares.items()},
        **{f"{name}_share": share for name, share in shares.items()},
    }


def sums_ahead(dtype: str, rank: int, every: bool) -> None:
    """The kernels of `combine`, or of `every` launch that `tile` measures."""
    sums = Sums(dtype, rank, "meta")
    for _, side, stack in sums.sides:
        for one in candidates(side.map, sums.matrix.element_size()) if every else (None,):
            side.run(sums.matrix, stack, one)


def tile(dtype: str, rank: int, rounds: int, say: Say) -> Figures:
    """All launches worth a measurement, in turn: the best, as lines of `MEASURED` (kernels/codegen/triton_tiles.py)."""
    sums = Sums(dtype, rank)
    itemsize = sums.matrix.element_size()
    figures: dict[str, Any] = {}
    for name, side, stack in sums.sides:
        tiles = {str(one): one for one in candidates(side.map, itemsize)}
        say(f"{name}: {len(tiles)} launches")
        calls = {label: partial(side.run, sums.matrix, stack, one) for label, one in tiles.items()}
        _, shares = _shares(sums, calls, rounds)
        best = max(shares, key=lambda label: shares[label])
        one = tiles[best]
        key = (side.map.sources, len(side.map.results), itemsize)
        figures[f"{name}_share"] = shares[best]
        figures[f"{name}_shares"] = shares
        figures[f"{name}_measured"] = f"{key}: Tile({one.rows}, {one.cols}, {one.warps}, {one.ahead}),"
    return figures
