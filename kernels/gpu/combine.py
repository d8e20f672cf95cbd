"""A linear map between the blocks of matrices and the slabs of a stack, worked on tensors by one generated kernel."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...errors import PlanError
from ...schemes_db.grids import Kind
from ..codegen.maps import Block, LinearMap
from ..codegen.triton_modules import Tile, alive, combine_kernel, tile_of
from ..codegen.triton_text import Combine, Direction

Tensor = Any

MOST_ITEMS = 65535
"""Most matrices of a batch that one launch takes: the limit of the second axis of a grid."""


@dataclass(frozen=True)
class _Variant:
    """The kernel for one storage order, dtype and kind of edges."""

    kernel: Any
    alive: int


class Combination:
    """A map with its blocks of the matrix; its kernels are generated when they are first needed.

    Matrix and stack may have any strides. A matrix stored by columns is worked as its transpose,
    so that threads always run along memory.
    """

    def __init__(
        self, linear: LinearMap, direction: Direction, blocks: tuple[Block, ...], kinds: tuple[Kind, ...] | None = None
    ) -> None:
        self.map, self.direction, self.blocks = linear, direction, blocks
        self.kinds = (Kind.FULL,) * len(blocks) if kinds is None else kinds
        self._variant = lru_cache(maxsize=8)(self._made)

    def work(self, by_columns: bool, double: bool, exact: bool) -> Combine:
        """What the kernel for this storage order, dtype and kind of edges works."""
        blocks, kinds = self.blocks, self.kinds
        if by_columns:
            blocks, kinds = tuple((j, i) for i, j in blocks), tuple(kind.mirrored for kind in kinds)
        return Combine(self.map, self.direction, blocks, kinds, double, exact)

    def _made(self, by_columns: bool, double: bool, exact: bool) -> _Variant:
        work = self.work(by_columns, double, exact)
        try:
            return _Variant(combine_kernel(work), alive(work))
        except ImportError:
            raise PlanError("products on a GPU need Triton: pip install 'lcma[torch]' on Linux") from None

    def run(self, matrix: Tensor, stack: Tensor, tile: Tile | None = None) -> None:
        """Work the map on a batch: matrix (items, rows, cols), stack (items, slabs, height, width).

        SPLIT reads the matrix and writes the stack, MERGE the other way round. Elements of the
        matrix past its edges count as zeros.
        """
        import torch

        if by_columns := matrix.stride(2) != 1 and matrix.stride(1) == 1:
            matrix, stack = matrix.transpose(1, 2), stack.transpose(2, 3)
        items, rows, cols = matrix.shape
        height, width = stack.shape[2:]
        if 0 in (items, height, width):
            return
        double = matrix.dtype == torch.float64
        parts = _parts(self.blocks, by_columns)
        variant = self._variant(by_columns, double, False)
        # A matrix that is contiguous in neither direction gains nothing from a tile that is wide in both.
        transposed = (stack.stride(3) == 1) != (matrix.stride(2) == 1)
        tile = tile_of(variant.alive, transposed) if tile is None else tile
        whole = (rows, cols) == (height * parts[0], width * parts[1])
        if whole and height % tile.rows == 0 and width % tile.cols == 0:
            variant = self._variant(by_columns, double, True)
        across = -(-width // tile.cols)
        grid = across * -(-height // tile.rows)
        # Triton launches on the current device, which need not be that of the tensors.
        with torch.cuda.device(matrix.device) if matrix.is_cuda else nullcontext():
            for first in range(0, items, MOST_ITEMS):
                count = min(items - first, MOST_ITEMS)
                variant.kernel[(grid, count)](
                    matrix[first:] if first else matrix,
                    stack[first:] if first else stack,
                    rows,
                    cols,
                    matrix.stride(1),
                    matrix.stride(2),
                    matrix.stride(0) if items > 1 else 0,
                    height,
                    width,
                    stack.stride(2),
                    stack.stride(3),
                    stack.stride(1),
                    stack.stride(0) if items > 1 else 0,
                    across,
                    ROWS=tile.rows,
                    COLS=tile.cols,
                    num_warps=tile.warps,
                )


def _parts(blocks: tuple[Block, ...], by_columns: bool) -> Block:
    rows, cols = (max(block[axis] for block in blocks) + 1 for axis in (0, 1))
    return (cols, rows) if by_columns else (rows, cols)
