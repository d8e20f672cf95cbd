"""Strategies on the CPU: for triangular products strips and levels of a scheme, for masked ones runs of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from ...schemes_db.grids import Kind
from ...schemes_db.symmetry import triangle_of
from ..arrays import Matrix
from ..cpu.executor import Core
from ..cpu.level import core_of
from ..cpu.partition import CpuMethod
from ..cpu.strategy import CpuStrategy, basic_reason
from ..cpu.triangular_products import HalfProduct, strip_count, zero_outside_triangle
from ..cpu.workspace import Arena
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Stage
from ..request import Request
from ..structure import BlockMask
from .block_masks import TILE, Kinds, block_runs, block_sizes, coarse_mask, multiply_runs
from .candidates import TriangularStrategy, stable_scheme_names

GROUPED = "grouped"
"""The method of a triangular scheme's level: products with proportional coefficients in C form one longer product;
the groups are executed as tasks of one thread each.
"""


@dataclass(frozen=True)
class CpuTriangular(TriangularStrategy, CpuStrategy):
    """A strategy for triangular products on the CPU.

    - vendor: the whole product by the library, masked afterwards.
    - strips: row strips of one GEMM each: the baseline.
    - scheme: a level of a triangular scheme, its grouped products distributed to the threads.
    """

    methods = (GROUPED,)
    device: str = "cpu"

    def schemes(self, request: Request, machine: Machine) -> Sequence[str]:
        known: Sequence[str] = stable_scheme_names() if machine.triangular is None else machine.triangular
        return known

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        program = candidate.program
        if program is not None and triangle_of(program.target) != request.triangle:
            return f"{program.target} is not the triangular product that is asked for"
        return basic_reason(program, request)

    def mode(self, candidate: Candidate) -> str:
        return "tasks" if self.name == "scheme" else "whole"

    def core(self, candidate: Candidate, request: Request, machine: Machine) -> Core:
        return _core(candidate, replace(request, max_error=None, max_workspace=None))


@lru_cache(maxsize=64)
def _core(candidate: Candidate, request: Request) -> Core:
    """Return the core, which predicting, sizing and building share."""
    triangle, sizes, dtype = request.its_triangle, request.shape, request.dtype
    if candidate.strategy in ("vendor", "strips"):
        size = request.n if triangle.side == "right" else request.m
        return HalfProduct(triangle, sizes, dtype, 1 if candidate.strategy == "vendor" else strip_count(size))
    return core_of(candidate.own_program, request, CpuMethod(grouped=True))


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
    family: str = "masked"
    baseline: bool = True

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        return basic_reason(None, request)

    def core(self, candidate: Candidate, request: Request, machine: Machine) -> Core:
        assert request.mask is not None  # its family says so
        return MaskedRuns(request.mask, request.shape, request.itemsize)


STRATEGIES = (
    CpuTriangular("strips", baseline=True),
    *(CpuTriangular(name) for name in ("vendor", "scheme")),
    CpuMaskedRuns(),
)
