"""Strategies for exact products on a GPU. Nothing was measured: prices are from the published peak rates of an H200."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ...errors import PlanError
from ..cuda.h200 import h200
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Parameters, Proposal, Source, Stage
from ..request import BITS, Request
from ..ring import ExactRing
from .cpu import FAMILY, is_exact, max_abs_of
from .schemes import ExactChain, LevelOf, catalogue_state, known_levels, restored_chain
from .tensor_executor import ExactTensorExecutor
from .tensor_levels import DIGITS, FLOAT, FloatTensorCore, IntegerTensorCore, integer_core
from .tensors import (
    FUSED,
    VENDOR,
    BitTensorCore,
    BitTensorLeaf,
    BitTensorLevel,
    DigitTensorLeaf,
    integer_bounds,
    require_int64,
)

LEAF, KERNEL, SCHEME = "leaf", "kernel", "scheme"

INT8_PEAK, FLOAT64_PEAK, MEMORY_PEAK = 1979e12, 67e12, 4.8e12
"""Operations and bytes a second. Source: NVIDIA H200 Tensor Core GPU datasheet (2024), without sparsity."""

MARGIN = 1.5
"""What the price of products of digits is multiplied by: no share of a peak rate is assumed to be reached."""

LEAST_BLOCK = 2048
"""Sides of blocks of schemes that are proposed to be timed."""

PROPOSED = 4

INTEGER_DTYPES = ("int8", "int16", "int32", "int64", "uint8")
"""What torch holds and compares on a GPU."""


@dataclass(frozen=True)
class CudaExact:
    """A strategy for exact products on a GPU.

    - leaf: over GF(2) torch's product of int8, then its parities; of integers float64 GEMM with delayed reduction, or
      digits of 8 bits where an entry is too large for it. The baseline.
    - kernel: over GF(2) our int8 product that writes one bit an element.
    - digits: integers as digits of 8 bits on int8 tensor cores, priced from peak rates with a margin.
    - scheme: levels of a scheme, over GF(2) above leaf (method vendor) or kernel (fused), of integers above float64 or
      digits.

    kernel and scheme have no price: they run where they are named, or where `lcma tune` found them fastest.
    """

    name: str
    baseline: bool = False
    family: str = FAMILY
    version: int = 1
    device: str = "cuda"

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        """See `Strategy.propose`."""
        if not is_exact(request):
            return []
        if self.name == SCHEME:
            found = [one for source in _chains(request) for one in self.candidates_of(source)]
            return [Proposal(math.nan, one) for one in found if self.can_run(one, request, machine) is None]
        candidate = Candidate(self.family, self.name)
        if self.name == LEAF:
            return [Proposal(0.0, candidate)]
        if self.can_run(candidate, request, machine) is not None:
            return []
        seconds = [stage.seconds for stage in self.predict(candidate, request, machine)]
        known = [one for one in seconds if one is not None]
        return [Proposal(sum(known) * (1 - 1e-9) if len(known) == len(seconds) else math.nan, candidate)]

    def candidates_of(self, source: Source) -> Iterable[Candidate]:
        """See `Strategy.candidates_of`."""
        if self.name == SCHEME and isinstance(source, ExactChain):
            methods = (VENDOR, FUSED) if source.ring.modulus == 2 else (FLOAT, DIGITS)
            yield from (Candidate(self.family, SCHEME, source, (("method", method),)) for method in methods)

    def restore(self, key: str, parameters: Parameters, request: Request) -> Candidate | None:
        """See `Strategy.restore`."""
        if self.name != SCHEME:
            return None if key else Candidate(self.family, self.name, None, parameters)
        chain = None if request.ring is None or not key else restored_chain(key, request.ring)
        return None if chain is None else Candidate(self.family, SCHEME, chain, parameters)

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """See `Strategy.can_run`."""
        if not is_exact(request):
            return "it is no exact product of plain matrices"
        bits = request.dtype == BITS
        if bits and self.name == DIGITS:
            return "digits are of integers; elements of GF(2) have one"
        if not bits and self.name == KERNEL:
            return f"on a GPU {self.name} is for GF(2) only; leave integers to leaf, digits or scheme"
        if not bits and request.dtype not in INTEGER_DTYPES:
            return f"{request.dtype} is not multiplied on a GPU; convert to one of {', '.join(INTEGER_DTYPES)}"
        try:
            if not _is_empty(request):
                self.core(candidate, request)
        except PlanError as error:
            return str(error)
        return None

    def core(self, candidate: Candidate, request: Request) -> BitTensorCore | IntegerTensorCore:
        """The core of a candidate for a request that is not empty.

        Raises:
            PlanError: a result does not fit int64, or a scheme does not hold in the ring.
        """
        assert request.ring is not None
        chain = candidate.source if isinstance(candidate.source, ExactChain) else None
        if request.dtype == BITS:
            method = candidate.method or (FUSED if self.name == KERNEL else VENDOR)
            return _bit_core(request.shape, chain, method)
        bounds = integer_bounds(request.ring, max_abs_of(request))
        require_int64(request.shape, request.ring, bounds, request.out_dtype)
        return _integer_core(request.shape, request.ring, bounds, chain, candidate.method or self.name)

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`; without seconds where nothing is known of the GPU or the strategy."""
        if _is_empty(request):
            return []
        core = self.core(candidate, request)
        (m, k, n), items = request.shape, request.items
        if isinstance(core, IntegerTensorCore):
            if self.name == SCHEME:
                return core.stages(items)
            assert isinstance(core, FloatTensorCore | DigitTensorLeaf)  # without a level
            stage = _integer_stage(core, items)
        else:
            flops, moved = _bit_costs(core)
            seconds = flops / INT8_PEAK + moved / MEMORY_PEAK if self.name == LEAF else None
            stage = Stage(f"product {m}x{k}x{n}", items * flops, items * moved, seconds and items * seconds, (m, k, n))
        if machine.profile.hardware != h200().hardware:
            stage = Stage(stage.name, stage.flops, stage.bytes, None, stage.product)
        return [stage]

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`."""
        return 0 if _is_empty(request) else self.core(candidate, request).workspace

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`: Triton compiles at the first run."""
        return ExactTensorExecutor(request, None if _is_empty(request) else self.core(candidate, request))


def _is_empty(request: Request) -> bool:
    return 0 in (*request.shape, *request.batch)


@lru_cache(maxsize=256)
def _bit_core(sizes: tuple[int, int, int], chain: ExactChain | None, method: str) -> BitTensorCore:
    return BitTensorLeaf(sizes, method) if chain is None else BitTensorLevel(chain.maps, sizes, method)


@lru_cache(maxsize=256)
def _integer_core(
    sizes: tuple[int, int, int], ring: ExactRing, bounds: tuple[int, int], chain: ExactChain | None, method: str
) -> IntegerTensorCore:
    levels = () if chain is None else chain.maps
    if method == LEAF:
        try:
            return integer_core(sizes, ring, bounds, levels, digits=False)
        except PlanError:  # one product of two entries exceeds 2^53, or their sum over Z does
            method = DIGITS
    return integer_core(sizes, ring, bounds, levels, digits=method == DIGITS)


def _bit_costs(core: BitTensorCore) -> tuple[float, float]:
    """Operations and bytes of one product of words."""
    if isinstance(core, BitTensorLeaf):
        m, k, n = core.sizes
        return 2.0 * m * k * n, 2.0 * (m * k + k * n) + (8.0 * m * n if core.method == VENDOR else m * n / 8)
    rank, (m, k, n) = core.level.rank, core.block
    flops, moved = _bit_costs(core.inner)
    sums = core.level.left.terms * m * k + core.level.right.terms * k * n + core.level.merge.terms * m * n
    return rank * flops, rank * moved + sums / 8


def _integer_stage(core: FloatTensorCore | DigitTensorLeaf, items: int) -> Stage:
    (m, k, n), count = core.sizes, items
    if isinstance(core, FloatTensorCore):
        flops, moved = 2.0 * m * k * n, 24.0 * (m * k + k * n) + 32.0 * m * n * -(-k // core.depth)
        seconds = flops / FLOAT64_PEAK + moved / MEMORY_PEAK
        return Stage("product in float64", count * flops, count * moved, count * seconds, (m, k, n))
    (stage,) = core.stages(count)
    return replace(stage, seconds=MARGIN * (stage.flops / INT8_PEAK + stage.bytes / MEMORY_PEAK))


def _chains(request: Request) -> Iterator[ExactChain]:
    """Schemes that `lcma tune` times: the grids that save most, and 2x2x2 below them, with blocks that fill a GPU."""
    if request.ring is None or _is_empty(request):
        return
    known = known_levels(request.ring, catalogue_state())
    ranked = sorted(known, key=lambda level: level.rank / math.prod(level.grid))
    fit = [level for level in ranked if _least(request, (level,)) >= LEAST_BLOCK][:PROPOSED]
    below = [level for level in known if level.grid == (2, 2, 2)]
    for levels in [(one,) for one in fit] + [(one, other) for one in fit for other in below]:
        if _least(request, levels) >= LEAST_BLOCK:
            yield ExactChain(levels, request.ring)


def _least(request: Request, levels: tuple[LevelOf, ...]) -> float:
    grids = (math.prod(level.grid[axis] for level in levels) for axis in range(3))
    return min(size / parts for size, parts in zip(request.shape, grids, strict=True))
