"""A linear map between the blocks of matrices and the slabs of a stack, computed on tensors by one generated kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ...errors import PlanError
from ...schemes_db.grids import Kind
from ..arrays import Tensor, torch
from ..codegen.maps import Block, LinearMap
from ..codegen.triton_text import BY_COLUMNS, BY_ROWS, FORM, STRIDED, Combine, Direction, combine_kernel
from ..codegen.triton_tiles import ACCESS, CombineTile, tile_of
from .launch import MOST_ITEMS, Repeated

Launch = Callable[..., object]

KEPT = 256
"""Maximum number of cached launches of a combination."""


class Combination:
    """A map with the positions of its blocks in the matrix; its kernels are generated on first use.

    Matrix and stack may have any strides. A column-major matrix is handled as its transpose,
    so that threads always access contiguous memory.
    """

    def __init__(self, form: Combine) -> None:
        self.form = form
        self._kernel = lru_cache(maxsize=16)(self._made)
        self._launches: dict[Any, Launch] = {}

    def work(self, by_columns: bool, double: bool, ahead: int = 0) -> Combine:
        """Return the specification of the kernel for this storage order, dtype and prefetch distance."""
        work = replace(self.form, double=double, ahead=ahead)
        if not by_columns:
            return work
        blocks, scale = tuple((j, i) for i, j in work.blocks), work.scale.mirrored
        kinds, slabs = (tuple(kind.mirrored for kind in some) for some in (work.kinds, work.slabs))
        return replace(work, blocks=blocks, kinds=kinds, slabs=slabs, scale=scale)

    def _made(self, by_columns: bool, double: bool, ahead: int) -> Any:
        try:
            return combine_kernel(self.work(by_columns, double, ahead))
        except ImportError:
            raise PlanError("products on a GPU need Triton: pip install 'lcma[torch]' on Linux") from None

    def run(
        self,
        matrix: Tensor,
        stack: Tensor,
        tile: CombineTile | None = None,
        shifts: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        """Execute the map on a batch: matrix (items, rows, cols), stack (items, slabs, height, width).

        TO_STACK reads the matrix and writes the stack, FROM_STACK the reverse. Elements of the matrix past its edges
        count as zeros. `shifts`: for a combination that scales, the exponents of rows and of columns (int32) of its one
        matrix.
        """
        assert (shifts is not None) == bool(self.form.scale)
        if (items := matrix.shape[0]) > MOST_ITEMS:
            for first in range(0, items, MOST_ITEMS):
                self.run(matrix[first : first + MOST_ITEMS], stack[first : first + MOST_ITEMS], tile)
            return
        self.launch(matrix, stack, tile)(matrix, stack, *(shifts or ()))

    def launch(self, matrix: Tensor, stack: Tensor, tile: CombineTile | None = None) -> Launch:
        """Return the launch of `run` for at most MOST_ITEMS matrices, also for others with the same properties."""
        # All properties that determine the code and its arguments, including the alignment of both tensors.
        key = (
            matrix.shape,
            stack.shape,
            matrix.stride(),
            stack.stride(),
            matrix.dtype,
            matrix.device,
            matrix.data_ptr() & 15,
            stack.data_ptr() & 15,
            tile,
        )
        launch = self._launches.get(key)
        if launch is None:
            launch = self._launch(matrix, stack, tile)
            if len(self._launches) >= KEPT:
                self._launches.clear()
            self._launches[key] = launch
        return launch

    def _launch(self, matrix: Tensor, stack: Tensor, tile: CombineTile | None) -> Launch:
        """Return the launch for tensors with the strides of these."""
        if by_columns := matrix.stride(2) != 1 and matrix.stride(1) == 1:
            matrix, stack = matrix.mT, stack.mT
        items, rows, cols = matrix.shape
        height, width = stack.shape[2:]
        if 0 in (items, height, width):
            return lambda *_: None
        # A matrix that is contiguous in neither direction gains nothing from a tile that is wide in both.
        transposed = (stack.stride(3) == 1) != (matrix.stride(2) == 1)
        if tile is None:
            tile = _fitting(tile_of(self.form.map, matrix.element_size(), transposed), width)
        across = -(-width // tile.cols)
        vector, _, slabs = form = form_of(matrix, stack)
        row_unit = 1 if slabs == BY_ROWS else vector
        numbers = (
            rows // row_unit,
            cols // vector,
            matrix.stride(1) // vector,
            matrix.stride(2),
            matrix.stride(0) // vector if items > 1 else 0,
            height // row_unit,
            width // vector,
            stack.stride(2) // vector,
            stack.stride(3) // vector,
            stack.stride(1) // vector,
            stack.stride(0) // vector if items > 1 else 0,
            across,
        )
        kernel = self._kernel(by_columns, matrix.dtype == torch.float64, tile.ahead)
        grid = (across * -(-height // tile.rows), items, 1)
        constants = dict(zip(FORM, (tile.rows, tile.cols, *form), strict=True))
        names = "matrix", "stack", *self.form.tensors
        launch = Repeated(kernel, grid, names, *numbers, **constants, num_warps=tile.warps)
        if by_columns and self.form.scale:  # rows of the transpose are columns of the matrix
            return lambda matrix, stack, of_rows, of_cols: launch(matrix, stack, of_cols, of_rows)
        return launch


def merge_of(merge: LinearMap, stored: tuple[Block, ...], grid: Sequence[Sequence[Kind]], **others: Any) -> Combination:
    """Return the map from products to all blocks of the result, with zeros for absent ones; `others`: see `Combine`."""
    at = dict(zip(stored, merge.results, strict=True))
    blocks = tuple((i, j) for i, row in enumerate(grid) for j in range(len(row)))
    kinds = tuple(grid[i][j] if (i, j) in at else Kind.FULL for i, j in blocks)
    whole = replace(merge, results=tuple(at.get(block, ()) for block in blocks))
    return Combination(Combine(whole, Direction.FROM_STACK, blocks, kinds, **others))


def form_of(matrix: Tensor, stack: Tensor) -> tuple[int, int, int]:
    """Return VECTOR, MATRIX and SLABS of a launch (see `combine_text`): what it has in common with others.

    matrix (items, rows, cols) and stack (items, slabs, height, width).
    """
    by_rows = BY_ROWS if stack.stride(3) == 1 else BY_COLUMNS if stack.stride(2) == 1 else STRIDED
    order = BY_ROWS if matrix.stride(2) == 1 else STRIDED
    sizes = [*matrix.shape[2:], *stack.shape[3:], *(matrix.shape[1:2] + stack.shape[2:3]) * (by_rows != BY_ROWS)]
    strides = [matrix.stride(1), *matrix.stride()[2:] * (order != BY_ROWS), stack.stride(1)]
    strides += [stack.stride(2)] * (by_rows != BY_COLUMNS) + [stack.stride(3)] * (by_rows != BY_ROWS)
    strides += [x.stride(0) for x in (matrix, stack) if x.shape[0] > 1]
    if STRIDED in (by_rows, order) or (matrix.data_ptr() | stack.data_ptr()) % ACCESS:
        return 1, order, by_rows
    widest = sorted({ACCESS // x.element_size() for x in (matrix, stack)}, reverse=True)
    fitting = (vector for vector in widest if not any(number % vector for number in (*sizes, *strides)))
    return next(fitting, 1), order, by_rows


def _fitting(tile: CombineTile, width: int) -> CombineTile:
    """Return the tile, with fewer warps if it is wider than a block: then most of it would be outside."""
    if tile.rows > 1:
        return tile
    share = next((part for part in (8, 4, 2) if part <= tile.warps and width <= tile.cols // part), 1)
    return replace(tile, cols=tile.cols // share, warps=tile.warps // share)
