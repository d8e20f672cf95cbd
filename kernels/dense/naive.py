"""Strategy "naive": plain evaluation on zero-padded copies, the reference for the other strategies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...schemes_db.evaluate import evaluate
from ...schemes_db.program import Load, Program, Store
from ..arrays import Matrix, Sizes
from ..cpu.executor import is_empty
from ..cpu.reasons import basic_reason
from ..cpu.strategy import CpuStrategy
from ..cpu.workspace import Arena, aligned
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Parameters, Proposal, Source, Stage
from ..request import Request
from .given import GivenProgram


def whole_grid(program: Program) -> Sizes:
    """Return the smallest sizes that every nest of grids of the program divides.

    Triangular blocks must be square on every level, so if there are any, the three sizes are equal.
    """
    grids = [whole_grid(inner) for _, inner in program.inner]
    common = [math.lcm(1, *(grid[i] for grid in grids)) for i in range(3)]
    target = program.target
    whole = [parts * size for parts, size in zip(target.shape, common, strict=True)]
    if any(kind.half for grid in (target.a, target.b, target.c) for row in grid for kind in row):
        whole = [math.lcm(*whole)] * 3
    m, k, n = whole
    return m, k, n


@dataclass(frozen=True)
class NaiveCore:
    """`schemes_db.evaluate` on copies whose blocks are each padded with zeros; a `StagedCore`."""

    program: Program
    sizes: Sizes
    dtype: np.dtype

    @property
    def block(self) -> Sizes:
        """The sizes of the blocks of the matrices."""
        m, k, n = (-(-size // parts) for size, parts in zip(self.sizes, self.program.target.shape, strict=True))
        return m, k, n

    @property
    def padded(self) -> Sizes:
        """The sizes of the copies."""
        shape, whole = self.program.target.shape, whole_grid(self.program)
        units = [size // parts for size, parts in zip(whole, shape, strict=True)]
        blocks = [-(-size // unit) * unit for size, unit in zip(self.block, units, strict=True)]
        m, k, n = (size * parts for size, parts in zip(blocks, shape, strict=True))
        return m, k, n

    def workspace(self, threads: int = 1) -> int:
        m, k, n = self.padded
        item = self.dtype.itemsize
        return 2 * aligned((m * k + k * n) * item) + aligned(values_bytes(self.program, self.padded, item))

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1) -> None:
        """Compute out = a b."""
        result = evaluate(self.program, self._copy(a, 0), self._copy(b, 1))
        (rows, _, cols), (height, _, width), (m, _, n) = self.program.target.shape, self.block, self.sizes
        blocks = result.reshape(rows, result.shape[0] // rows, cols, result.shape[1] // cols)[:, :height, :, :width]
        out[...] = blocks.reshape(rows * height, cols * width)[:m, :n]

    def _copy(self, matrix: Matrix, side: int) -> Matrix:
        """Return A (side 0) or B (1) with zeros at the end of every block."""
        shape, block, padded = (x[side : side + 2] for x in (self.program.target.shape, self.block, self.padded))
        (rows, cols), (height, width) = shape, block
        whole = np.pad(matrix, ((0, rows * height - matrix.shape[0]), (0, cols * width - matrix.shape[1])))
        more = (0, padded[0] // rows - height), (0, padded[1] // cols - width)
        blocks = np.pad(whole.reshape(rows, height, cols, width), ((0, 0), more[0], (0, 0), more[1]))
        return blocks.reshape(padded)

    def compile(self) -> None:
        """See `StagedCore.compile`: there is no code to compile."""

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        return [Stage("evaluation", *_cost(self.program, self.padded, self.dtype.itemsize, times))]


def values_bytes(program: Program, sizes: Sizes, itemsize: int) -> int:
    """Return an upper bound of the bytes of an evaluation: every value of a level, and one product's of the next."""
    bm, bk, bn = (size // parts for size, parts in zip(sizes, program.target.shape, strict=True))
    largest = max(bm * bk, bk * bn, bm * bn) * itemsize
    # Two more for the partial sums of a store, and the matrix C itself.
    own = (len(program.ops) + 2) * largest + sizes[0] * sizes[2] * itemsize
    return own + max((values_bytes(inner, (bm, bk, bn), itemsize) for _, inner in program.inner), default=2 * largest)


@dataclass(frozen=True)
class NaiveScheme(CpuStrategy):
    """Slow and plain evaluation of a program; its products are numpy's. Never proposed, runs only if named.

    Its `workspace` is an upper bound: the evaluation does not allocate from the pool,
    which only reserves the memory.
    """

    name: str = "naive"
    family: str = "dense"
    version: int = 2

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal]:
        return []

    def candidates_of(self, source: Source) -> Iterable[Candidate]:
        if isinstance(source, GivenProgram):
            yield Candidate(self.family, self.name, source)

    def restore(self, key: str, parameters: Parameters, request: Request) -> Candidate | None:
        """See `Strategy.restore`: None, as it is never proposed and thus never measured."""
        return None

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        if not request.is_dense:
            return "the operands are structured"
        if request.dtype == "bfloat16":
            return "the plain evaluation is by numpy, which has no bfloat16"
        if (reason := basic_reason(candidate.program, request)) or request.dtype != "int8":
            return reason
        return "the plain evaluation adds in the dtype of C: convert with .astype(np.int32)"

    def core(self, candidate: Candidate, request: Request, machine: Machine) -> NaiveCore:
        return NaiveCore(candidate.own_program, request.shape, np.dtype(request.dtype))

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`; its seconds are unknown."""
        return [] if is_empty(request) else self.core(candidate, request, machine).stages(request.items)


def _cost(program: Program, sizes: Sizes, itemsize: int, times: int) -> tuple[int, int]:
    """Return operations and bytes of `times` evaluations: each addition reads two blocks and writes one."""
    bm, bk, bn = (size // parts for size, parts in zip(sizes, program.target.shape, strict=True))
    block = max(bm * bk, bk * bn, bm * bn)
    inner = dict(program.inner)
    flops = times * program.additions * block
    loads = sum(isinstance(op, Load | Store) for op in program.ops)
    moved = times * (3 * program.additions + 2 * loads) * block * itemsize
    for op in program.products:
        if op.kind in inner:
            more = _cost(inner[op.kind], (bm, bk, bn), itemsize, times)
        else:
            more = times * 2 * bm * bk * bn, times * (bm * bk + bk * bn + bm * bn) * itemsize
        flops, moved = flops + more[0], moved + more[1]
    return flops, moved
