"""Cores of exact products of tensors on a GPU: int8 with the parity taken and levels above it, float64, 8-bit digits.

And the sums of blocks of such levels, and their memory.

Bits are int64 words as in `BitMatrix`, which kernels view as int32; integers are int64. Measured rates: `cuda`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Sizes, Tensor, torch
from ..cuda.int8 import LEAST_ROWS, TILE, launch_int8
from ..ring import ExactRing
from .bits import words_of
from .integers import FloatLeaf
from .level import Blocks, ExactLevel, LevelArithmetic, Pair
from .schemes import ExactMap

VENDOR, FUSED = "vendor", "fused"
"""Products of bytes: by torch._int_mm followed by the parities, or by our kernel, which writes one bit per element."""


def _tiles(size: int, tile: int) -> int:
    return -(-size // tile)


def pack(elements: Tensor) -> Tensor:
    """Return the words (rows, words) int64 of a matrix (rows, cols) of integers or bool, taken modulo 2."""
    elements = elements.view(torch.uint8) if elements.dtype == torch.bool else elements
    elements = elements if elements.stride(-1) == 1 else elements.contiguous()
    rows, cols = elements.shape
    made = elements.new_zeros((rows, words_of(cols)), dtype=torch.int64)
    if made.numel():
        _pack(elements, made.view(torch.int32), rows, cols)
    return made


def _pack(elements: Tensor, out: Tensor, rows: int, cols: int) -> None:
    from .triton_kernels import pack_parity

    grid, width = (_tiles(rows, 16), _tiles(out.shape[1], 4)), out.shape[1]
    pack_parity[grid](elements, out, rows, cols, elements.stride(0), width, out.stride(0), R=16, W=4, num_warps=4)


def unpack(words: Tensor, cols: int, padded: int = 0, turned: bool = False) -> Tensor:
    """Return the elements of words (rows, words) as int8 (rows, cols), zero-padded to `padded` rows, or transposed."""
    from .triton_kernels import unpack_bits

    source = (words if words.stride(-1) == 1 else words.contiguous()).view(torch.int32)
    rows, width = source.shape
    padded = max(rows, padded)
    out = words.new_empty((32 * width, padded) if turned else (padded, 32 * width), dtype=torch.int8)
    if out.numel():
        grid = _tiles(padded, 32), _tiles(width, 4)
        unpack_bits[grid](
            source, out, rows, width, source.stride(0), padded, out.stride(0), TURN=turned, R=32, W=4, num_warps=4
        )
    return out[:cols] if turned else out[:, :cols]


@dataclass(frozen=True)
class BitTensorLeaf:
    """One product m x k x n of words: elements of one byte, an int8 product on tensor cores, the parities packed."""

    sizes: Sizes
    method: str

    @property
    def _padded(self) -> Sizes:
        m, k, n = self.sizes
        return max(LEAST_ROWS, 8 * _tiles(m, 8)), 64 * words_of(k), 64 * words_of(n)

    def workspace(self, threads: int = 1) -> int:
        """See `Core.workspace`: bytes of torch's allocator."""
        m, k, n = self._padded
        return m * k + k * n + (4 * m * n if self.method == VENDOR else 0)

    def run(self, a: Tensor, b: Tensor, out: Tensor, memory: Any = None, threads: int = 1) -> None:
        """See `Core.run`; all are of words."""
        (m, _, _), (rows, k, n) = self.sizes, self._padded
        left, right = unpack(a, k, rows), unpack(b, n, k, turned=True)
        target = out.view(torch.int32)
        if self.method == VENDOR:
            _pack(torch._int_mm(left, right.t()), target, m, n)
        else:
            launch_int8(left[:m], right, target, TILE, parity=True)


@dataclass(frozen=True)
class FloatTensorLeaf:
    """A product of integers in float64 with delayed reduction, or over Z below 2^53; bounds as of `FloatLeaf`.

    Raises:
        PlanError: a sum could exceed the exact range of float64.
    """

    sizes: Sizes
    ring: ExactRing
    bounds: tuple[int, int]

    def __post_init__(self) -> None:
        _ = self._leaf

    @cached_property
    def _leaf(self) -> FloatLeaf:
        return FloatLeaf(self.sizes, "float64", self.ring.modulus, self.bounds, self.ring.modulus > 0)

    @property
    def depth(self) -> int:
        """The inner size of products between reductions."""
        return self._leaf.depth

    def workspace(self, threads: int = 1) -> int:
        """See `Core.workspace`: bytes of torch's allocator."""
        m, k, n = self.sizes
        return 8 * (2 * m * k + 2 * k * n + 3 * m * n) + self._leaf.workspace(1)

    def run(self, a: Tensor, b: Tensor, out: Tensor, memory: Any = None, threads: int = 1) -> None:
        """See `Core.run`; all are int64."""
        modulus = self.ring.modulus
        left, right = (centred(x, modulus).to(torch.float64) for x in (a, b))
        total: Tensor = 0
        for start in range(0, self.sizes[1], self.depth):
            part = slice(start, start + self.depth)
            product = left[:, part] @ right[part]
            total = product.add_(total) if start else product
            # All are integers below 2^53, so every step is exact but the quotient, whose error is at most 2 / n.
            if self._leaf.reduce:
                total -= modulus * torch.round(total / modulus)
        out.copy_(total.to(torch.int64))
        if modulus:
            out.remainder_(modulus)


@dataclass(frozen=True)
class DigitTensorLeaf:
    """A product of integers by digits of 8 bits, int8 products on tensor cores, and their sums joined in int64.

    All products of digits with equal weight are one product of a longer inner size, summed in int32.
    """

    sizes: Sizes
    ring: ExactRing
    bounds: tuple[int, int]

    @cached_property
    def digits(self) -> int:
        """The minimum number of digits for the entries: -128 to 127 each."""
        most, count = max(self.bounds), 1
        while 127 * (256**count - 1) // 255 < most:
            count += 1
        return count

    @property
    def depth(self) -> int:
        """The inner size up to which sums stay below 2^31, a multiple of 64."""
        k = 64 * _tiles(self.sizes[1], 64)
        return int(min(k, ((1 << 31) - 1) // (self.digits << 14) // 64 * 64))

    @property
    def _padded(self) -> tuple[int, int]:
        return max(LEAST_ROWS, 8 * _tiles(self.sizes[0], 8)), 8 * _tiles(self.sizes[2], 8)

    def workspace(self, threads: int = 1) -> int:
        """See `Core.workspace`: bytes of torch's allocator."""
        m, n = self._padded
        return self.digits * self.depth * (m + n) + 4 * (2 * self.digits - 1) * m * n

    def run(self, a: Tensor, b: Tensor, out: Tensor, memory: Any = None, threads: int = 1) -> None:
        """See `Core.run`; all are int64."""
        from .triton_kernels import join_digits, split_digits

        (m, k, n), (rows, cols), count, modulus = self.sizes, self._padded, self.digits, self.ring.modulus
        terms = 2 * count - 1
        for start in range(0, k, self.depth):
            part = min(self.depth, k - start)
            depth = 64 * _tiles(part, 64)
            left = a.new_zeros((rows, count * depth), dtype=torch.int8)
            right = a.new_zeros((cols, count * depth), dtype=torch.int8)
            for x, made, turned in (
                (a[:, start : start + part], left, False),
                (b[start : start + part].t(), right, True),
            ):
                grid = _tiles(x.shape[0], 32), _tiles(depth, 64)
                split_digits[grid](
                    x, made, x.shape[0], part, *x.stride(), depth, made.stride(0), modulus,
                    DIGITS=count, REVERSED=turned, R=32, C=64, num_warps=4,
                )  # fmt: skip
            sums = a.new_empty((terms, rows, cols), dtype=torch.int32)
            for t in range(terms):
                first, last = max(0, t - count + 1), min(t, count - 1)
                shift = count - 1 - t
                lefts = left[:, first * depth : (last + 1) * depth]
                rights = right[:, (first + shift) * depth : (last + 1 + shift) * depth]
                sums[t] = torch._int_mm(lefts, rights.t())
            grid = _tiles(m, 16), _tiles(n, 64)
            join_digits[grid](
                sums, out, m, n, rows, cols, out.stride(0), modulus, ADD=start > 0, TERMS=terms, R=16, C=64, num_warps=4
            )


def centred(x: Tensor, modulus: int) -> Tensor:
    """Return residues of least magnitude, or x itself without a modulus."""
    if not modulus:
        return x
    x = x.remainder(modulus)
    return torch.where(x > modulus // 2, x - modulus, x)


BitTensorCore = BitTensorLeaf | ExactLevel
IntegerTensorCore = FloatTensorLeaf | DigitTensorLeaf


HEIGHT, WIDTH = 16, 128
"""Rows and words of 32 bits of a block that one program sums."""


@dataclass(frozen=True)
class TensorMemory:
    """torch's allocator, used as an `Arena`."""

    device: Any

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
        """Return an uninitialised tensor."""
        return torch.empty(shape, dtype=getattr(torch, dtype.name), device=self.device)

    def rest(self) -> TensorMemory:
        """Return the memory itself: it does not end."""
        return self

    def split(self, count: int, nbytes: int) -> list[TensorMemory]:
        """Return the memory of so many workers."""
        return [self] * count


@dataclass(frozen=True)
class TensorSums(LevelArithmetic):
    """Words over GF(2), whose sums are XORs.

    Sums of words move an eighth of the bytes that byte elements would; only the operands of one product are unpacked.
    """

    dtype = np.dtype(np.int64)
    pads = False

    def width(self, cols: int) -> int:
        return words_of(cols)

    def combine(self, role: int, sums: ExactMap, source: Blocks, target: Blocks, block: Pair, threads: int) -> None:
        from .triton_kernels import sum_blocks

        (x, froms), (y, tos), (rows, words) = source, target, block
        # In words of 32 bits.
        x, y = (x if x.stride(-1) == 1 else x.contiguous()).view(torch.int32), y.view(torch.int32)
        unit, cols = np.array([1, 2]), 2 * words
        index = (sums.starts, *(froms[sums.places] * unit).T, *(tos * unit).T)
        starts, tops, lefts, *ends = (torch.from_numpy(places.copy()).to(y.device) for places in index)
        sum_blocks[-(-cols // WIDTH), -(-rows // HEIGHT), len(tos)](
            *(x, y, starts, tops, lefts, *ends, rows, cols, *x.shape, x.stride(0), *y.shape, y.stride(0)),
            **{"R": HEIGHT, "W": WIDTH},
            num_warps=4,
        )
