"""Strategies for exact products on a GPU, priced by measurements on an H200."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from ...errors import PlanError
from ...schemes_db.catalog_file import catalogue_state
from ..arrays import Tensor, torch
from ..cuda.estimate import h200
from ..cuda.packed_product import PackedArithmetic, packed_executor
from ..measured import measured
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Stage
from ..request import BITS, Request
from ..ring import ExactRing
from .bits import words_of
from .gf2 import bit_core
from .schemes import ExactChain, LevelOf, grid_of, known_levels
from .strategy import SCHEME, ExactStrategy, chain_of, max_abs_of
from .tensors import (
    FUSED,
    VENDOR,
    BitTensorCore,
    BitTensorLeaf,
    DigitTensorLeaf,
    FloatTensorLeaf,
    IntegerTensorCore,
    TensorMemory,
    TensorSums,
)

LEAF, KERNEL, DIGITS = "leaf", "kernel", "digits"

LEAST_BLOCK, PRICED_BLOCK = 2048, 6144
"""Block sides from which schemes are proposed for timing, and from which they have a price."""

PROPOSED = 4

INTEGER_DTYPES = ("int8", "int16", "int32", "int64", "uint8")
"""Integer dtypes that torch supports and compares on a GPU."""

PRICES = measured("exact")


@dataclass(frozen=True)
class CudaExact(ExactStrategy):
    """A strategy for exact products on a GPU.

    - leaf: over GF(2) torch's int8 product, then its parities; for integers float64 GEMM with delayed reduction, or
      digits of 8 bits if an entry is too large for it. The baseline.
    - kernel: over GF(2) our int8 product that writes one bit per element.
    - digits: integers as digits of 8 bits on int8 tensor cores.
    - scheme: over GF(2) levels of a scheme above kernel. Blocks of a side below PRICED_BLOCK have no price: they run
      if they are named, or if `lcma tune` found them fastest.
    """

    def chains(self, request: Request, machine: Machine) -> Iterator[ExactChain]:
        """See `ExactStrategy.chains`: schemes with the least prices, 2x2x2 below them, blocks that fill a GPU."""
        if request.dtype != BITS:
            return
        assert request.ring is not None
        known, ring = known_levels(request.ring, catalogue_state()), request.ring
        fit = [level for level in known if _least(request, (level,)) >= LEAST_BLOCK]
        fit.sort(key=lambda level: bit_costs(_bit_core(request.shape, ExactChain((level,), ring), FUSED))[2])
        fit = fit[:PROPOSED]
        below = [level for level in known if level.grid == (2, 2, 2)]
        for levels in [(one,) for one in fit] + [(one, other) for one in fit for other in below]:
            if _least(request, levels) >= LEAST_BLOCK:
                yield ExactChain(levels, ring)

    def refuses(self, request: Request) -> str | None:
        bits = request.dtype == BITS
        if bits and self.name == DIGITS:
            return "digits are of integers; elements of GF(2) have one"
        if not bits and self.name in (KERNEL, SCHEME):
            return f"on a GPU {self.name} is for GF(2) only; leave integers to leaf or digits"
        if not bits and request.dtype not in INTEGER_DTYPES:
            return f"{request.dtype} is not multiplied on a GPU; convert to one of {', '.join(INTEGER_DTYPES)}"
        return None

    def core(self, candidate: Candidate, request: Request, machine: Machine) -> BitTensorCore | IntegerTensorCore:
        ring = request.ring
        assert ring is not None
        if request.dtype == BITS:
            return _bit_core(request.shape, chain_of(candidate), VENDOR if self.name == LEAF else FUSED)
        if request.out_dtype not in (None, "int64"):
            raise PlanError(f"out_dtype {request.out_dtype} is computed on a processor; move the operands there")
        most = ring.magnitude(max_abs_of(request))
        if not ring.modulus and request.k * most**2 >= 1 << 63:
            raise PlanError("elements can exceed int64 on a GPU; move the operands to a processor, or state max_abs")
        return _integer_core(request.shape, ring, (most, most), self.name)

    def priced(
        self, core: BitTensorCore | IntegerTensorCore, candidate: Candidate, request: Request, machine: Machine
    ) -> list[Stage]:
        (m, k, n), items, chain = request.shape, request.items, chain_of(candidate)
        if isinstance(core, FloatTensorLeaf | DigitTensorLeaf):
            name, flops, moved, price = integer_costs(core)
        else:
            name, (flops, moved, price) = f"product {m}x{k}x{n}", bit_costs(core)
        measured = machine.profile.hardware == h200().hardware
        if chain is not None and _least(request, chain.levels) < PRICED_BLOCK:
            measured = False
        return [Stage(name, items * flops, items * moved, items * price if measured else None, (m, k, n))]

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`: Triton compiles at the first run."""
        core = None if request.is_empty else self.core(candidate, request, machine)

        def multiply(a: Tensor, b: Tensor, packed: None, out: Tensor) -> None:
            assert core is not None  # an empty product is not computed
            core.run(a.to(torch.int64), b.to(torch.int64), out, TensorMemory(a.device))

        arithmetic = PackedArithmetic(multiply, by_rows=True)
        if request.dtype == BITS:
            arithmetic = replace(arithmetic, width=words_of)
        return packed_executor(request, arithmetic, self.workspace(candidate, request, machine))


@lru_cache(maxsize=256)
def _bit_core(sizes: tuple[int, int, int], chain: ExactChain | None, method: str) -> BitTensorCore:
    levels = () if chain is None else chain.maps
    return bit_core(levels, sizes, partial(BitTensorLeaf, method=method), TensorSums())


@lru_cache(maxsize=256)
def _integer_core(
    sizes: tuple[int, int, int], ring: ExactRing, bounds: tuple[int, int], strategy: str
) -> IntegerTensorCore:
    if strategy == LEAF:
        with suppress(PlanError):  # one product of two entries exceeds 2^53, or their sum over Z does
            return FloatTensorLeaf(sizes, ring, bounds)
    return DigitTensorLeaf(sizes, ring, bounds)


def _least(request: Request, levels: tuple[LevelOf, ...]) -> float:
    return min(size / parts for size, parts in zip(request.shape, grid_of(levels), strict=True))


def bit_costs(core: BitTensorCore, summed: float = PRICES.summed) -> tuple[float, float, float]:
    """Return operations, bytes and seconds of one product over GF(2)."""
    if isinstance(core, BitTensorLeaf):
        m, k, n = core.sizes
        flops = 2.0 * m * k * n
        if core.method == VENDOR:
            moved = 2.0 * (m * k + k * n) + 8.0 * m * n
            return flops, moved, flops / PRICES.int8_vendor + moved / PRICES.moved
        moved = 2.0 * (m * k + k * n) + m * n / 8
        rate = PRICES.int8_kernel if k % PRICES.whole == 0 else PRICES.uneven * PRICES.int8_kernel
        return flops, moved, flops / rate + moved / PRICES.moved
    rank, (m, k, n) = core.level.rank, core.block
    flops, moved, seconds = bit_costs(core.inner, PRICES.summed_below)
    sums = (core.level.left.terms * m * k + core.level.right.terms * k * n + core.level.merge.terms * m * n) / 8
    return rank * flops, rank * moved + sums, rank * seconds + sums / summed


def integer_costs(core: IntegerTensorCore) -> tuple[str, float, float, float]:
    """Return name, operations, bytes and seconds of one product of integers."""
    m, k, n = core.sizes
    if isinstance(core, FloatTensorLeaf):
        parts = -(-k // core.depth)
        flops, moved = 2.0 * m * k * n, 24.0 * (m * k + k * n) + 32.0 * m * n * parts
        reduced = m * n * (PRICES.reduced + PRICES.reduced_again * parts) if core.ring.modulus else 0.0
        seconds = flops / PRICES.float64 + moved / PRICES.converted + reduced + PRICES.launched
        return "product in float64", flops, moved, seconds
    digits, flops = core.digits, 2.0 * m * k * n * core.digits**2
    moved = (8.0 + digits) * (m * k + k * n) + (8.0 + 12.0 * (2 * digits - 1)) * m * n
    seconds = flops / PRICES.int8_vendor + moved / PRICES.split + PRICES.launched
    return f"products of {digits} digits", flops, moved, seconds


STRATEGIES = CudaExact("leaf", baseline=True), *(CudaExact(name) for name in ("kernel", "digits", "scheme"))
