"""Sums of blocks of tensors: the arithmetic of levels on a GPU, and their memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Tensor, torch
from .bits import words_of
from .level import Blocks, LevelArithmetic, Pair
from .schemes import ExactMap

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
        from .triton_bits import sum_blocks

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
