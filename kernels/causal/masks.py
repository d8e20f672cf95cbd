"""The strategy for masked products on the CPU: runs of wanted blocks by the library."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...schemes_db.grids import Kind
from ..arrays import Matrix
from ..cpu.executor import Core
from ..cpu.strategy import CpuStrategy, basic_reason
from ..cpu.strips import zero_outside_triangle
from ..cpu.workspace import Arena
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Stage
from ..request import Request
from ..structure import BlockMask
from .block_masks import TILE, Kinds, block_runs, block_sizes, coarse_mask, multiply_runs

FAMILY = "masked"


@dataclass(frozen=True)
class MaskedRuns(Core):
    """Each run of wanted blocks in a row of blocks as one GEMM; half blocks are masked afterwards."""

    mask: BlockMask
    sizes: tuple[int, int, int]
    itemsize: int

    @cached_property
    def _tiles(self) -> tuple[Kinds, int, int]:
        """The kinds of the blocks, their height and width; of a mask of elements, of tiles of it."""
        kinds, (m, _, n) = self.mask.kinds, self.sizes
        if kinds.shape == (m, n) and max(m, n) > TILE:
            return coarse_mask(kinds, TILE, TILE), TILE, TILE
        return kinds, *block_sizes(kinds, m, n)

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1) -> None:
        out[...] = 0
        kinds = self.mask.kinds
        multiply_runs(np.matmul, zero_outside_triangle, a, b, out, *self._tiles)
        if self._tiles[0].shape != kinds.shape:
            out[kinds == Kind.ABSENT] = 0

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        (kinds, height, width), (m, k, n) = self._tiles, self.sizes
        stages = []
        for _, _, start, stop, _ in block_runs(kinds, height, width):
            size = (min(height, m), k, min((stop - start) * width, n))
            flops = 2 * times * size[0] * size[1] * size[2]
            moved = times * (size[0] * k + k * size[2] + size[0] * size[2]) * self.itemsize
            stages.append(Stage(f"run {size[0]}x{k}x{size[2]}", flops, moved, product=size))
        cleared = times * m * n * self.itemsize
        return [*stages, Stage("zeros", 0, cleared)]


@dataclass(frozen=True)
class CpuMaskedRuns(CpuStrategy):
    """The library's product of each run of wanted blocks: the baseline."""

    name: str = "vendor"
    family: str = FAMILY
    baseline: bool = True

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        return basic_reason(None, request)

    def core(self, candidate: Candidate, request: Request, machine: Machine) -> Core:
        assert request.mask is not None  # its family says so
        return MaskedRuns(request.mask, request.shape, request.itemsize)


STRATEGIES = (CpuMaskedRuns(),)
