"""Products with factors whose large dense blocks are multiplied by a scheme with fewer multiplications."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ...schemes_db.program import ProductKind, Program
from ...schemes_db.resolve import resolve
from ...schemes_db.straightline import program_of
from ..codegen.certified import certified
from ..cuda.cost_model import CudaCostModel
from ..cuda.flat_program import reason_against
from ..cuda.level import CudaLevel, cuda_level
from ..cuda.shape import MAX_PIECES, Shape
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, NamedSource, Parameters, Source, Stage
from ..precision import ACCURATE
from ..request import CUDA_DTYPES, Layout, Request
from .blocks import Tensor
from .chain import FactorChain
from .executor import StructuredExecutor
from .pattern import Pattern
from .strategy import FAMILY, StructuredStrategy, chain_in
from .tiles import block_batches
from .views import buffer_rows, copied_ends, padded, steps_of, tensors_like

SCHEME = "scheme"

NAMES = ("strassen", "strassen/strassen", "strassen/strassen/strassen")
"""The proposed chains of levels: names of the catalogue, outermost first."""

DTYPES = ("float32", "float64")
"""The dtypes that a chain is proposed for; for others the vendor's product of such blocks is hardly ever slower."""

LEAST_BLOCK = 1024
"""The minimum side of a block, and columns of the batch, for which a scheme is proposed."""


@dataclass(frozen=True)
class BlockScheme(NamedSource):
    """The nested program of a chain of levels by name."""

    name: str

    @cached_property
    def program(self) -> Program:
        """The program of all levels, each scheme proven in this process."""
        return _program(self.name)


@lru_cache(maxsize=16)
def _program(name: str) -> Program:
    *outer, program = (program_of(certified(resolve(one))) for one in name.split("/"))
    for one in reversed(outer):
        program = one.nested({ProductKind.FULL: program})
    return program


@dataclass(frozen=True)
class BlockSchemeProduct:
    """K1 ... KL X with every block's product by one level: Y^T = X^T W^T, piece by piece.

    The batch is the row dimension, so that pieces of a large batch share the sums of the weights.
    """

    structure: FactorChain
    level: CudaLevel
    pieces: tuple[int, ...]

    def run(self, factors: Sequence[Tensor], x: Tensor, out: Tensor) -> None:
        """Compute out (rows, n) = W x (cols, n), whose blocks can be read in place."""
        steps, empty = steps_of(self.structure), tensors_like(x)
        given = zip(steps, reversed(self.structure.canonical(factors)), reversed(self.pieces), strict=True)
        for step, weights, pieces in given:
            target = out if step is steps[-1] else empty(step.pattern.rows, x.shape[1], False)
            for operands in block_batches(weights, step.source.view(x), step.target.view(target)):
                for left, right, product in zip(*operands, strict=True):
                    self.level.run(right.mT[None], left.mT[None], product.mT[None], pieces)
            x = target


@dataclass(frozen=True)
class CudaBlockSchemes(StructuredStrategy):
    """`strided` with a chain of levels in every block: the candidate's program, run by the level executor of dense
    products on views of X, the weights and Y. Blocks are computed one by one; only their sums are stored.
    """

    name: str = SCHEME

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """See `StructuredStrategy`: chains if blocks are large."""
        sides = [side for one in chain_in(request).patterns for side in (one.b, one.c)]
        if min(*sides, request.n) >= LEAST_BLOCK and request.arithmetic in DTYPES:
            for name in NAMES:
                yield Candidate(FAMILY, self.name, BlockScheme(name))

    def candidates_of(self, source: Source) -> Iterable[Candidate]:
        """See `Strategy.candidates_of`: any program for general products."""
        if source.program.target.is_general and source.program.rank > 1:
            yield Candidate(FAMILY, self.name, source)

    def restore(self, key: str, parameters: Parameters, request: Request) -> Candidate | None:
        known = key in NAMES and not parameters and self.multiplies(request)
        return Candidate(FAMILY, self.name, BlockScheme(key)) if known else None

    def device_reason(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        if request.dtype not in CUDA_DTYPES or request.precision == ACCURATE:
            return f"sums of blocks are not computed in {request.arithmetic}; choose the strategy strided"
        patterns = chain_in(request).patterns
        if any(copied_ends(chain_in(request), *(layout is Layout.COLUMNS for layout in request.layouts[1:]))):
            return "blocks of a batch-first operand with d > 1 cannot be read as they are; store the batch last"
        program = candidate.own_program
        if program.ring.characteristic:
            return f"the program holds over {program.ring} only; lift its scheme to Z first"
        if reason := reason_against(program, request.arithmetic):
            return reason
        if None in (_pieces(candidate, request, one) for one in patterns):
            return f"a block needs more workspace than the {request.max_workspace} bytes allowed"
        return None

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`: for every block the sums of X, of the weights and of Y, and the products."""
        if 0 in request.shape:
            return []
        assert isinstance(machine.costs, CudaCostModel)
        stages = []
        for pattern in reversed(chain_in(request).patterns):
            stages += _stages(_level(candidate), pattern, request, machine.costs)
        return stages

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: the stacks of one block, and the results between factors."""
        if 0 in request.shape:
            return 0
        patterns, level = chain_in(request).patterns, _level(candidate)
        stacks = [
            _shape(one, request).stack_bytes(level.target, level.slabs, _pieces(candidate, request, one) or MAX_PIECES)
            for one in patterns
        ]
        between = sum(buffer_rows(chain_in(request), False, False)) * padded(request.n) * request.itemsize
        return max(stacks) + between

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        structure, level = chain_in(request), _level(candidate)
        pieces = tuple(_pieces(candidate, request, one) or MAX_PIECES for one in structure.patterns)
        product = BlockSchemeProduct(structure, level, pieces)
        held = self.workspace(candidate, request, machine)
        return StructuredExecutor(request, structure, product.run, held)


def _level(candidate: Candidate) -> CudaLevel:
    return cuda_level(candidate.own_program)


def _shape(pattern: Pattern, request: Request) -> Shape:
    """Return the shape of one block's product: its columns of X, transposed, times its weights, transposed."""
    return Shape(request.n, pattern.c, pattern.b, request.dtype)


def _pieces(candidate: Candidate, request: Request, pattern: Pattern) -> int | None:
    """Return the minimum number of pieces of a block's product within the request's workspace, or None."""
    level, shape = _level(candidate), _shape(pattern, request)
    return 1 if shape.empty else shape.pieces_within(level.target, level.slabs, request.max_workspace)


def _stages(level: CudaLevel, pattern: Pattern, request: Request, costs: CudaCostModel) -> list[Stage]:
    n, item, blocks = request.n, request.itemsize, pattern.a * pattern.d
    bm, bk, bn = level.blocks(n, pattern.c, pattern.b, item)
    lefts, rights, rank = level.slabs
    sums = (
        ("Combine X", n * pattern.c + lefts * bm * bk, level.left.map.additions * bm * bk),
        ("Combine W", pattern.c * pattern.b + rights * bk * bn, level.right.map.additions * bk * bn),
        ("Combine Y", n * pattern.b + rank * bm * bn, level.merge.map.additions * bm * bn),
    )
    stages = [
        Stage(name, blocks * flops, blocks * moved * item, blocks * float(costs.combine(moved * item)))
        for name, moved, flops in sums
    ]
    seconds = blocks * float(costs.gemm(request.arithmetic, bm, bk, bn, rank, "batched"))
    moved = blocks * rank * (bm * bk + bk * bn + bm * bn) * item
    name = f"{blocks * rank} products {bm}x{bk}x{bn}"
    products = Stage(name, 2.0 * blocks * rank * bm * bk * bn, moved, seconds, (bm, bk, bn))
    return [*stages[:2], products, stages[2]]
