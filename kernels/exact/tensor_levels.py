"""Cores of exact products of tensors of integers on a GPU: float64 below proven bounds, and levels of schemes.

Integers are int64. The sums and their reductions are those of the CPU: `floats.float_core`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...errors import PlanError
from ..arrays import Sizes, Tensor, torch
from ..planning.strategy import Stage
from ..ring import ExactRing
from .floats import FloatCore, FloatKind, FloatLeaf, Reductions, float_core
from .level import ExactLevel, block_sizes
from .schemes import RingMaps
from .tensor_sums import TensorSums
from .tensors import INT64, DigitTensorLeaf, centred, require_int64

FLOAT, DIGITS = "float64", "digits"
"""Products of integers: in float64, or by digits of 8 bits."""


@dataclass(frozen=True)
class FloatTensorCore:
    """A product in float64 with delayed reduction, or over Z below 2^53, with or without levels of schemes.

    Raises:
        PlanError: a sum could exceed the exact range of float64.
    """

    sizes: Sizes
    ring: ExactRing
    bounds: tuple[int, int]
    levels: tuple[RingMaps, ...] = ()

    def __post_init__(self) -> None:
        _ = self.core

    @cached_property
    def core(self) -> FloatCore:
        """The product of operands in float64."""
        modulus = self.ring.modulus
        return float_core(self.levels, self.sizes, "float64", modulus, self.bounds, modulus > 0, TENSORS)

    @property
    def depth(self) -> int:
        """The inner size of products between reductions."""
        core = self.core
        while not isinstance(core, FloatLeaf):
            core = core.inner
        return core.depth

    def workspace(self, threads: int = 1) -> int:
        """See `Core.workspace`: bytes of torch's allocator."""
        m, k, n = self.sizes
        return 8 * (2 * m * k + 2 * k * n + 3 * m * n) + self.core.workspace(1)

    def run(self, a: Tensor, b: Tensor, out: Tensor, memory: Any, threads: int = 1) -> None:
        """See `Core.run`; all are int64."""
        modulus = self.ring.modulus
        left, right = (centred(x, modulus).to(torch.float64) for x in (a, b))
        total = left.new_empty(out.shape)
        self.core.run(left, right, total, memory)
        out.copy_(total.to(torch.int64))
        if modulus:
            out.remainder_(modulus)

    def stages(self, times: int) -> list[Stage]:
        """Return the cost of `times` runs, without seconds."""
        (m, k, n), moved = self.sizes, 24 * times
        converted = Stage("float64 and back", 0.0, moved * (m * k + k * n + m * n))
        return [converted, *self.core.stages(times)]


class FloatTensorLeaf(FloatLeaf):
    """`FloatLeaf` for tensors: all rows are multiplied at once."""

    def run(self, a: Tensor, b: Tensor, out: Tensor, memory: Any = None, threads: int = 1) -> None:
        """See `Core.run`; all are float64."""
        modulus = self.modulus
        for start in range(0, self.sizes[1], self.depth):
            part = slice(start, start + self.depth)
            product = a[:, part] @ b[part]
            if start:
                product += out
            # All are integers below 2^53, so every step is exact but the quotient, whose error is at most 2 / n.
            out.copy_(product - modulus * torch.round(product / modulus) if self.reduce else product)


TENSORS = FloatKind(FloatTensorLeaf, TensorSums)

DigitTensorCore = DigitTensorLeaf | ExactLevel
IntegerTensorCore = FloatTensorCore | DigitTensorCore


def digit_core(levels: tuple[RingMaps, ...], sizes: Sizes, ring: ExactRing, bounds: tuple[int, int]) -> DigitTensorCore:
    """Return the core of levels on int64 above products by digits of 8 bits.

    Modulo n the sums are reduced if the next ones could exceed int64, and the result always.

    Raises:
        PlanError: a sum of blocks or of products could exceed int64.
    """
    modulus = ring.modulus
    if not levels:
        require_int64(sizes, ring, bounds, None)
        return DigitTensorLeaf(sizes, ring, (ring.magnitude(bounds[0]), ring.magnitude(bounds[1])))
    level, block = levels[0], block_sizes(sizes, levels[0].grid)
    sums = level.left.norm * bounds[0], level.right.norm * bounds[1]
    _require(max(sums), "blocks")
    reduced = False
    try:
        inner = digit_core(levels[1:], block, ring, sums)
    except PlanError:
        if not modulus:
            raise
        inner, reduced = digit_core(levels[1:], block, ring, (modulus - 1,) * 2), True
    _require(level.merge.norm * _bound(inner), "products")
    arithmetic = TensorSums(INT64, Reductions(modulus, reduced, True, (False,) * 3))
    bound = modulus - 1 if modulus else level.merge.norm * _bound(inner)
    return ExactLevel(level, sizes, block, arithmetic, inner, bound)


def _bound(core: DigitTensorCore) -> int:
    """Return the largest magnitude of an element of the result."""
    if isinstance(core, ExactLevel):
        return core.bound
    modulus = core.ring.modulus
    return modulus - 1 if modulus else core.sizes[1] * core.bounds[0] * core.bounds[1]


def _require(most: int, what: str) -> None:
    if most >= 1 << 63:
        raise PlanError(f"sums of {what} can reach {most:.3g}, beyond int64; name another scheme or strategy")
