"""Cores of exact products of tensors of integers on a GPU: float64 below proven bounds, and levels of schemes.

Integers are int64. The sums and their reductions are those of the CPU: `floats.float_core`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...errors import PlanError
from ..planning.strategy import Stage
from ..ring import ExactRing
from .floats import FloatCore, FloatLeaf, float_core
from .schemes import ExactMap, RingLevel
from .tensors import DigitTensorLeaf, centred, corners, require_int64

Tensor = Any
Sizes = tuple[int, int, int]

FLOAT, DIGITS = "float64", "digits"
"""Products of integers: in float64, or by digits of 8 bits."""

INT64 = 1 << 63


@dataclass(frozen=True)
class FloatTensorCore:
    """A product in float64 with delayed reduction, or over Z below 2^53, with or without levels of schemes.

    Raises:
        PlanError: a sum could exceed the exact range of float64.
    """

    sizes: Sizes
    ring: ExactRing
    bounds: tuple[int, int]
    levels: tuple[RingLevel, ...] = ()

    def __post_init__(self) -> None:
        _ = self.core

    @cached_property
    def core(self) -> FloatCore:
        """The CPU core of the same product, which defines its blocks and reductions."""
        modulus = self.ring.modulus
        return float_core(self.levels, self.sizes, "float64", modulus, self.bounds, modulus > 0)

    @property
    def depth(self) -> int:
        """The inner size of products between reductions."""
        core = self.core
        while not isinstance(core, FloatLeaf):
            core = core.inner
        return core.depth

    @property
    def workspace(self) -> int:
        """Bytes allocated besides the operands and the result."""
        m, k, n = self.sizes
        return 8 * (2 * m * k + 2 * k * n + 3 * m * n) + self.core.workspace(1)

    def run(self, a: Tensor, b: Tensor, out: Tensor) -> None:
        """Compute out = a b, all int64."""
        import torch

        modulus = self.ring.modulus
        left, right = (centred(x, modulus).to(torch.float64) for x in (a, b))
        total = left.new_empty(out.shape)
        _run(self.core, left, right, total)
        out.copy_(total.to(torch.int64))
        if modulus:
            out.remainder_(modulus)

    def stages(self, times: int) -> list[Stage]:
        """Return the cost of `times` runs, without seconds."""
        (m, k, n), moved = self.sizes, 24 * times
        converted = Stage("float64 and back", 0.0, moved * (m * k + k * n + m * n))
        return [converted, *self.core.stages(times)]


def _run(core: FloatCore, a: Tensor, b: Tensor, out: Tensor) -> None:
    """Compute out = a b, all float64, following `core`, the CPU core."""
    import torch

    if isinstance(core, FloatLeaf):
        modulus = core.modulus
        for start in range(0, core.sizes[1], core.depth):
            part = slice(start, start + core.depth)
            product = a[:, part] @ b[part]
            if start:
                product += out
            # All are integers below 2^53, so every step is exact but the quotient, whose error is at most 2 / n.
            out.copy_(product - modulus * torch.round(product / modulus) if core.reduce else product)
        return
    level = core.level
    left, right, products = (a.new_empty(shape) for shape in core.shapes)
    sums = core.modulus if core.reduce_sums else 0
    _add_operands((a, b), (left, right), level, core.block, sums, core.each[:2])
    for r in range(level.rank):
        _run(core.inner, left[r], right[r], products[r])
    _add_products(products, out, level, core.block, core.modulus if core.reduce_result else 0, core.each[2])


class DigitTensorLevel:
    """One level of a scheme on int64, and all below it; products by digits of 8 bits.

    Modulo n the sums are reduced if the next ones could exceed int64, and the result always.

    Raises:
        PlanError: a sum of blocks or of products could exceed int64.
    """

    def __init__(self, levels: tuple[RingLevel, ...], sizes: Sizes, ring: ExactRing, bounds: tuple[int, int]) -> None:
        level = levels[0]
        self.level, self.sizes, self.ring = level, sizes, ring
        self.block: Sizes = tuple(-(-size // parts) for size, parts in zip(sizes, level.grid, strict=True))  # type: ignore[assignment]
        sums = level.left.norm * bounds[0], level.right.norm * bounds[1]
        _require(max(sums), "blocks")
        self.reduce_sums = False
        try:
            self.inner = _digit_core(levels[1:], self.block, ring, sums)
        except PlanError:
            if not ring.modulus:
                raise
            self.inner = _digit_core(levels[1:], self.block, ring, (ring.modulus - 1,) * 2)
            self.reduce_sums = True
        self.bound = ring.modulus - 1 if ring.modulus else level.merge.norm * _bound(self.inner)
        _require(level.merge.norm * _bound(self.inner), "products")

    @property
    def _shapes(self) -> list[tuple[int, int, int]]:
        m, k, n = self.block
        rank = self.level.rank
        return [(rank, m, k), (rank, k, n), (rank, m, n)]

    @property
    def workspace(self) -> int:
        """Bytes allocated besides the operands and the result."""
        return sum(8 * math.prod(shape) for shape in self._shapes) + self.inner.workspace

    def run(self, a: Tensor, b: Tensor, out: Tensor) -> None:
        """Compute out = a b, all int64."""
        modulus = self.ring.modulus
        left, right, products = (a.new_empty(shape) for shape in self._shapes)
        sums = modulus if self.reduce_sums else 0
        _add_operands((a, b), (left, right), self.level, self.block, sums, (False, False))
        for r in range(self.level.rank):
            self.inner.run(left[r], right[r], products[r])
        _add_products(products, out, self.level, self.block, modulus, False)

    def stages(self, times: int) -> list[Stage]:
        """Return the cost of `times` runs, without seconds."""
        level, (m, k, n) = self.level, self.block
        gm, gk, gn = level.grid
        found = []
        for name, blocks, sums, size in (
            ("A", gm * gk, level.left, m * k),
            ("B", gk * gn, level.right, k * n),
            ("C", gm * gn, level.merge, m * n),
        ):
            moved = 8 * times * size * (blocks + level.rank)
            found.append(Stage(f"sums of {name}", 2 * times * size * sums.terms, moved))
        return [*found, *self.inner.stages(times * level.rank)]


DigitTensorCore = DigitTensorLeaf | DigitTensorLevel
IntegerTensorCore = FloatTensorCore | DigitTensorCore


def _digit_core(
    levels: tuple[RingLevel, ...], sizes: Sizes, ring: ExactRing, bounds: tuple[int, int]
) -> DigitTensorCore:
    if levels:
        return DigitTensorLevel(levels, sizes, ring, bounds)
    require_int64(sizes, ring, bounds, None)
    most = ring.modulus // 2 + 1
    held = (min(bounds[0], most), min(bounds[1], most)) if ring.modulus else bounds
    return DigitTensorLeaf(sizes, ring, held)


def _bound(core: DigitTensorCore) -> int:
    """Return the largest magnitude of an element of the result."""
    if isinstance(core, DigitTensorLevel):
        return core.bound
    modulus = core.ring.modulus
    return modulus - 1 if modulus else core.sizes[1] * core.bounds[0] * core.bounds[1]


def _require(most: int, what: str) -> None:
    if most >= INT64:
        raise PlanError(f"sums of {what} can reach {most:.3g}, beyond int64; name another scheme or strategy")


def integer_core(
    sizes: Sizes, ring: ExactRing, bounds: tuple[int, int], levels: tuple[RingLevel, ...], digits: bool
) -> IntegerTensorCore:
    """Return the core of a product of integers of these magnitudes, by digits or in float64.

    Raises:
        PlanError: a sum could exceed the exact range of its dtype.
    """
    if digits:
        return _digit_core(levels, sizes, ring, bounds)
    return FloatTensorCore(sizes, ring, bounds, levels)


def _add_operands(
    operands: tuple[Tensor, Tensor],
    slabs: tuple[Tensor, Tensor],
    level: RingLevel,
    block: Sizes,
    modulus: int,
    each: tuple[bool, ...],
) -> None:
    """Compute slabs = the sums of the blocks of A and of B."""
    (m, k, n), (gm, gk, gn) = block, level.grid
    for x, target, sums, (down, across), (rows, cols), one in zip(
        operands, slabs, (level.left, level.right), ((gm, gk), (gk, gn)), ((m, k), (k, n)), each, strict=True
    ):
        places = corners(down, across, rows, cols), corners(level.rank, 1, rows, 0)
        sum_of_blocks(x, places[0], sums, target.view(-1, cols), places[1], (rows, cols), modulus, one)


def _add_products(products: Tensor, out: Tensor, level: RingLevel, block: Sizes, modulus: int, each: bool) -> None:
    """Compute out = the sums of the products."""
    (m, _, n), (gm, _, gn) = block, level.grid
    places = corners(level.rank, 1, m, 0), corners(gm, gn, m, n)
    sum_of_blocks(products.view(-1, n), places[0], level.merge, out, places[1], (m, n), modulus, each)


def sum_of_blocks(
    source: Tensor,
    froms: list[tuple[int, int]],
    sums: ExactMap,
    target: Tensor,
    tos: list[tuple[int, int]],
    block: tuple[int, int],
    modulus: int,
    each: bool,
) -> None:
    """Compute blocks of target = sums of multiples of blocks of source, reduced if there is a modulus."""
    import torch

    from .triton_sums import sum_blocks

    columns = [[froms[p][axis] for p in sums.places] for axis in (0, 1)]
    index = [torch.tensor(x, dtype=torch.int64, device=source.device) for x in (sums.starts.tolist(), *columns)]
    values = torch.tensor(sums.values.tolist(), dtype=source.dtype, device=source.device)
    ends = [torch.tensor([x[axis] for x in tos], dtype=torch.int64, device=source.device) for axis in (0, 1)]
    grid = -(-block[1] // 64), -(-block[0] // 16), len(tos)
    source = source if source.stride(-1) == 1 else source.contiguous()
    sum_blocks[grid](
        source, target, *index, values, *ends, *block, *source.shape, source.stride(0), *target.shape, target.stride(0),
        modulus, REDUCE=modulus > 0, EACH=each, R=16, W=64, num_warps=4,
    )  # fmt: skip
