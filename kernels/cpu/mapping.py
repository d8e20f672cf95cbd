"""Blocks of matrices as compiled maps take them, and linear maps bound to code that runs on such blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import Matrix
from ..codegen.maps import MapPiece
from ..codegen.rows import rows_kernel
from ..dtypes import dtype_of
from ..planning.strategy import Stage
from .threads import parallel_rows
from .workspace import ALIGNMENT

Blocks = npt.NDArray[np.int64]
"""Blocks of one shape: a row (address, row stride in bytes, kind, rows, columns) for each."""


def leading_dimension(width: int, itemsize: int) -> int:
    """Return the row stride of our own blocks, in elements: whole cache lines, never a multiple of half a page.

    Rows whose distance is a multiple of (half) a page all map to the same few cache sets.
    """
    lines = -(-width * itemsize // ALIGNMENT)
    if lines * ALIGNMENT % 2048 == 0:
        lines += 1
    return lines * ALIGNMENT // itemsize


def blocks_at(addresses: Any, strides: Any, shapes: Any) -> Blocks:
    """Return blocks of these addresses (count,), strides (count,) or one of all, and (kind, rows, columns)."""
    table = np.empty((len(addresses), 5), np.int64)
    table[:, 0], table[:, 1], table[:, 2:] = addresses, strides, shapes
    return table


STREAMING_BYTES = 1 << 20
"""Results of at least this many bytes bypass the caches (measured: faster from 1.3 MB on, float32 512)."""

PARALLEL_BYTES = 1 << 20
"""For results of at least this many bytes, the rows are shared among threads."""


@dataclass(frozen=True)
class BoundMap:
    """Some results of a linear map, for blocks of one dtype, height and width (as they are stored)."""

    pieces: tuple[MapPiece, ...]
    dtype: str
    height: int
    width: int

    @property
    def block_bytes(self) -> int:
        return self.height * self.width * dtype_of(self.dtype).numpy.itemsize

    @property
    def traffic(self) -> int:
        """Bytes read and written: each piece reads its sources once."""
        return sum(len(piece.sources) + len(piece.results) for piece in self.pieces) * self.block_bytes

    @property
    def flops(self) -> int:
        parts = dtype_of(self.dtype).parts
        return sum(piece.map.additions for piece in self.pieces) * self.height * self.width * parts

    def compile(self) -> None:
        """Compile the code of every piece."""
        for piece in self.pieces:
            rows_kernel(piece.map, self.dtype)

    def run(
        self, source: Blocks, target: Blocks, spare: Matrix, threads: int, place: Mapping[int, int] | None = None
    ) -> None:
        """Execute the map. Result i of the whole map is written to block i of the target, or to block `place[i]`.

        `spare` are a row of zeros and a row for unwanted output, at least as wide as the blocks.
        """
        zeros, trash = spare.ctypes.data, spare.ctypes.data + spare.strides[0]
        for piece in self.pieces:
            kernel = rows_kernel(piece.map, self.dtype)
            targets = list(piece.results) if place is None else [place[i] for i in piece.results]
            blocks = np.concatenate([source[list(piece.sources)], target[targets]])
            results = len(piece.results) * self.block_bytes
            work = partial(kernel, blocks.ctypes.data, zeros, trash, self.width, results >= STREAMING_BYTES)
            parallel_rows(work, self.height, threads if results >= PARALLEL_BYTES else 1)


def sums_stage(name: str, kernels: Iterable[BoundMap]) -> Stage:
    """Return the cost of one run of each map, without seconds."""
    kernels = list(kernels)
    return Stage(name, sum(kernel.flops for kernel in kernels), sum(kernel.traffic for kernel in kernels))
