"""Products of a program accumulated in the blocks of C by one generated kernel, without storing H in memory.

A tile of C needs `FusedProducts.peak` accumulators in registers: three of 128x128 fit 8 warps. C~ is accumulated
in float32, so that nothing is rounded between the products and C.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from ...errors import PlanError
from ..codegen.accumulators import accumulator_order
from ..codegen.fused_text import Fused
from ..codegen.maps import LinearMap
from ..codegen.triton_modules import fused_kernel
from ..codegen.triton_text import Direction
from .combine import Combination
from .flat_program import FlatProgram
from .launch import starter
from .naive import combine
from .stack import ALIGNED, DTYPES, missing_accelerator, programs_of
from .tiles import Tile

Tensor = Any

GROUP = 8
"""Rows of tiles that are computed together, so that they share operands in the cache."""

MOST_ACCUMULATORS = 5
"""Maximum number of accumulators of a tile for which a kernel is generated."""

TILES = {1: Tile(128, 256, 64, 8, 3), 2: Tile(128, 128, 64, 8, 4), 3: Tile(128, 128, 64, 8, 5)}
"""Tiles by peak that fit 255 registers per thread without spills, compiled for sm_90. Others: SMALL."""

SMALL = Tile(128, 64, 64, 8, 4)


def tile_of_peak(peak: int) -> Tile:
    """Return the largest tile so many of whose accumulators fit the registers."""
    return TILES.get(peak, SMALL)


@dataclass(frozen=True)
class Schedule:
    """The distribution of groups of products to programs, `rounds` of whole groups first.

    `split`: the rest is distributed evenly by products, with groups divided between neighbours; else by groups.
    """

    split: bool
    rounds: int


def schedule(groups: int, programs: int, split: bool, aligned: bool) -> Schedule:
    """Return the schedule of so many groups. `aligned`: whole groups run in rounds that compute the same product.

    Groups are divided only if there is one for every program, so that none is divided twice.
    """
    if not split or groups < programs or groups % programs == 0:
        return Schedule(False, 0)
    return Schedule(True, groups // programs - 1 if aligned else 0)


class FusedProducts:
    """The products of a flat program, accumulated in C.

    Raises:
        PlanError: the program has half products, or needs too many accumulators.
    """

    def __init__(self, flat: FlatProgram) -> None:
        if any(op.kind.half for op in flat.products):
            raise PlanError("half products are not fused")
        self.order = accumulator_order(flat.merge)
        self.blocks = flat.maps.stored
        self.grid = flat.program.target.shape[0], flat.program.target.shape[2]
        self.rank = flat.rank
        copy = LinearMap(len(self.blocks), (), tuple(((1, i),) for i in range(len(self.blocks))))
        self._merge = Combination(flat.merge, Direction.MERGE, self.blocks)
        self._placing = Combination(copy, Direction.MERGE, self.blocks)
        if len(self.blocks) != self.grid[0] * self.grid[1]:
            raise PlanError(f"some blocks of C are absent from {flat.program.target}")
        if self.peak > MOST_ACCUMULATORS:
            raise PlanError(
                f"its products need {self.peak} accumulators, more than the {MOST_ACCUMULATORS} that are held"
            )

    @property
    def peak(self) -> int:
        """Number of accumulators in use at once."""
        return self.order.peak

    def whole_tiles(self, height: int, width: int) -> bool:
        """Return whether tiles divide blocks of C of this size, so that they are written in place."""
        return not (height % self.tile.m or width % self.tile.n)

    @property
    def tile(self) -> Tile:
        """The largest tile whose accumulators fit the registers."""
        return tile_of_peak(self.peak)

    def workspace(self, device: Any, tile: Tile | None = None) -> int:
        """Return the bytes of the accumulators of divided groups, and of the flags."""
        tile = tile or self.tile
        return programs_of(device) * 4 * (self.peak * tile.m * tile.n + 1)

    def run(
        self,
        lefts: Tensor,
        rights: Tensor,
        out: Tensor,
        *,
        split: bool = False,
        aligned: bool = True,
        tile: Tile | None = None,
        group: int = GROUP,
    ) -> None:
        """Compute out = C for A~ (items, R, bm, bk), B~ (items, R, bk, bn), both contiguous; out (items, m, n).

        If tiles do not divide blocks, or blocks C, the blocks are written to a buffer and copied.

        Raises:
            PlanError: another dtype than float16 and bfloat16, rows that TMA does not support, or a GPU without
                one.
        """
        import torch
        from triton.tools.tensor_descriptor import TensorDescriptor

        tile = tile or self.tile
        items, _, height, inner = lefts.shape
        width = rights.shape[3]
        if str(lefts.dtype).removeprefix("torch.") not in DTYPES:
            raise PlanError(f"products are fused in {' and '.join(DTYPES)}, not in {lefts.dtype}")
        if reason := missing_accelerator(lefts.device):
            raise PlanError(f"products are not fused here: {reason}")
        if any(size * lefts.element_size() % ALIGNED for size in (inner, width)) or not (
            lefts.is_contiguous() and rights.is_contiguous()
        ):
            raise PlanError(f"stacks must be contiguous, their rows multiples of {ALIGNED} bytes")
        whole = tuple(out.shape[1:]) == (self.grid[0] * height, self.grid[1] * width)
        placed = whole and not (height % tile.m or width % tile.n) and _described(out)
        blocks = out if placed else out.new_empty((items, len(self.blocks), height, width))
        described = [
            TensorDescriptor.from_tensor(stack, block)
            for stack, block in (
                (lefts.flatten(0, 1), [1, tile.m, tile.k]),
                (rights.flatten(0, 1), [1, tile.k, tile.n]),
                (blocks if placed else blocks.flatten(0, 1), [1, tile.m, tile.n]),
            )
        ]
        groups = items * -(-height // tile.m) * -(-width // tile.n)
        programs = min(programs_of(lefts.device), groups)
        plan = schedule(groups, programs, split, aligned)
        kept = self.peak * tile.m * tile.n * programs if plan.split else 1
        saved = torch.empty(kept, dtype=torch.float32, device=lefts.device)
        flags = torch.zeros(programs if plan.split else 1, dtype=torch.int32, device=lefts.device)
        kernel = fused_kernel(Fused(self.order, self.blocks, placed, plan.split))
        # Triton launches on the current device, which may differ from the tensors' device.
        with torch.cuda.device(lefts.device) if lefts.is_cuda else nullcontext():
            starter(kernel, (programs,), lefts)(
                *(*described, saved, flags, items, height, inner, width, plan.rounds, programs),
                GROUP=group,
                M=tile.m,
                N=tile.n,
                K=tile.k,
                num_warps=tile.warps,
                num_stages=tile.stages,
            )
        if not placed:
            combine(self._placing, out, blocks)

    def run_plain(self, lefts: Tensor, rights: Tensor, out: Tensor) -> None:
        """`run` by plain torch: the twin on a processor where Triton does not interpret its kernels."""
        import torch

        products = torch.matmul(lefts.float(), rights.float())
        result = out.float()
        combine(self._merge, result, products)
        out.copy_(result)


def _described(out: Tensor) -> bool:
    """Return whether TMA can write the tensor."""
    strides = [step * out.element_size() for step in out.stride()[:2]]
    return out.stride(2) == 1 and not (out.data_ptr() % ALIGNED or any(step % ALIGNED for step in strides))
