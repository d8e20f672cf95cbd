"""Sums of blocks of tensors: the arithmetic of levels on a GPU, and their memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Tensor, torch
from .bits import words_of
from .floats import Reductions
from .level import Blocks, LevelArithmetic, Pair
from .schemes import ExactMap


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
    """Integers stored as float64 or int64, or (without `reductions`) words over GF(2), whose sums are XORs.

    Sums of words move an eighth of the bytes that byte elements would; only the operands of one product are unpacked.
    """

    dtype: np.dtype[Any]
    reductions: Reductions | None = None
    pads = False

    def width(self, cols: int) -> int:
        return words_of(cols) if self.reductions is None else cols

    def combine(self, role: int, sums: ExactMap, source: Blocks, target: Blocks, block: Pair, threads: int) -> None:
        from .triton_sums import sum_blocks

        (x, froms), (y, tos), (rows, cols), reductions = source, target, block, self.reductions
        x, unit = x if x.stride(-1) == 1 else x.contiguous(), np.array([1, 1])
        if reductions is None:  # in words of 32 bits
            x, y, cols, unit = x.view(torch.int32), y.view(torch.int32), 2 * cols, np.array([1, 2])
        index = (sums.starts, *(froms[sums.places] * unit).T, *(tos * unit).T)
        starts, tops, lefts, *ends = (torch.from_numpy(places.copy()).to(y.device) for places in index)
        values = torch.from_numpy(sums.values).to(y.device, x.dtype)
        modulus, tile = 0 if reductions is None else reductions.of(role), 64 * int(unit[1])
        sum_blocks[-(-cols // tile), -(-rows // 16), len(tos)](
            x, y, starts, tops, lefts, values, *ends, rows, cols, *x.shape, x.stride(0), *y.shape, y.stride(0), modulus,
            XOR=reductions is None, REDUCE=modulus > 0, EACH=reductions is not None and reductions.each[role],
            R=16, W=tile, num_warps=4,
        )  # fmt: skip
