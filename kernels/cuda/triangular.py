"""Triangular products on a GPU: one Triton kernel that skips absent tiles, and the core that runs any method of them.

The core handles batches, shared operands, and too little memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...errors import PlanError
from ...schemes_db.symmetry import Triangle
from ..arrays import Tensor, torch
from ..request import Request
from .executor import TensorCore
from .launch import MOST_ITEMS
from .stack import TILE as STACK_TILE
from .stack import multiply_stack, programs_of
from .tiles import SIDES, Tile, launch, tile_table

WAVES = 2
"""Number of large tiles per multiprocessor from which persistent programs are faster."""


TILES = {
    "bfloat16": Tile(128, 256, 64, 8, 3),
    "float16": Tile(128, 256, 64, 8, 3),
    "tf32": Tile(128, 128, 32, 8, 4),
    "float32": Tile(64, 64, 32, 4, 3),
    "float64": Tile(64, 64, 16, 4, 2),
}
"""Tiles by dtype; float32 is strict, without tensor cores."""

SMALL_TILE = Tile(64, 64, 32, 4, 3)
"""The tile for matrices too small for the large tile."""


def tile_for(dtype: str, m: int, n: int) -> Tile:
    """Return the tile for a product of m x n."""
    large = TILES[dtype]
    return large if min(m // large.m, n // large.n) >= 4 or dtype == "float64" else SMALL_TILE


def on_tiles(a: Tensor, b: Tensor, triangle: Triangle, out: Tensor, *, tile: Tile = STACK_TILE) -> bool:
    """Compute the product, as `multiply`, by the kernel of `stack`; return False without launching if unsupported."""
    order = tile_table(out.shape[1], out.shape[2], triangle, tile, str(a.device), True)
    return multiply_stack(a, b, out, tiles=order, side=triangle.side, upper=triangle.upper, tile=tile)


def multiply(
    a: Tensor, b: Tensor, triangle: Triangle, out: Tensor | None = None, *, tile: Tile | None = None
) -> Tensor:
    """Compute the triangular product of a (items, m, k) and b (items / heads, k, n), any strides; zero elsewhere.

    float64 is summed in float64, all else in float32; float32 is multiplied by torch's setting
    (allow_tf32).

    Raises:
        PlanError: Triton is not installed, or the dtype is not one of a GPU's floats.
    """
    try:
        from .triangular_kernel import triangular_gemm
    except ImportError:
        raise PlanError("triangular products on a GPU need Triton: pip install 'lcma[torch]' on Linux") from None
    name = str(a.dtype).removeprefix("torch.")
    if name not in TILES:
        raise PlanError(f"dtype {name} is not supported on a GPU; convert to one of {', '.join(TILES)}")
    rounded = name == "float32" and (a.is_cuda or a.is_meta) and torch.backends.cuda.matmul.allow_tf32
    items, m, k = a.shape
    n = b.shape[-1]
    if out is None:
        out = a.new_empty((items, m, n))
    if 0 in (items, m, n):
        return out
    if k == 0:
        return out.zero_()
    fills = -(-m // STACK_TILE.m) * -(-n // STACK_TILE.n) * items >= WAVES * programs_of(a.device)
    if tile is None and fills and on_tiles(a, b, triangle, out):
        return out
    if triangle.side == "out":
        out.zero_()  # the tiles that are not computed
    tile = tile_for("tf32" if rounded else name, m, n) if tile is None else tile
    heads = items // len(b)
    table = tile_table(m, n, triangle, tile, str(a.device), False)
    step = MOST_ITEMS // heads * heads or heads
    for start in range(0, items, step):
        count = min(step, items - start)
        strides = (*a.stride(), *b.stride(), *out.stride())
        launch(
            triangular_gemm,
            (len(table), count),
            a,
            (a[start:], b[start // heads :], out[start:], table, m, k, n, *strides, heads),
            tile,
            SIDE=SIDES.index(triangle.side),
            UPPER=triangle.upper,
            EXACT=m % tile.m == 0 and n % tile.n == 0 and k % tile.k == 0,
            PRECISION="tf32" if rounded else "ieee",
            DOUBLE=name == "float64",
        )
    return out


Method = Callable[..., Any]
"""Computes one product of a (m, k) and b (k, n) in `out`, or all: a (items, m, k), b (items / heads, k, n)."""


class TriangularProduct(TensorCore):
    """Runs a triangular product on every pair of matrices, by one call each, or `together` by one call for all.

    C is zero outside a wanted triangle. A right factor is executed as the left one of the transposed product. `spare`
    computes one product with little memory, if the device has too little for `method`.
    """

    def __init__(self, request: Request, method: Method, spare: Method | None = None, together: bool = False) -> None:
        super().__init__(request)
        self._method, self._spare, self._together = method, spare, together
        self._turned = request.its_triangle.side == "right"

    def writes(self, out: Tensor) -> bool:
        return bool(out.is_contiguous())

    def run(self, a: Tensor, b: Tensor, out: Tensor) -> None:
        """See `TensorCore.run`.

        Raises:
            PlanError: the device has too little memory.
        """
        if self._turned:
            a, b, out = b.mT, a.mT, out.mT
        batch = self.request.batch
        # `out` is contiguous or the transpose of such: its leading sizes fold without a copy.
        items_out = out.flatten(0, -3) if batch else out[None]
        items_a = a.expand(*batch, *a.shape[-2:]).reshape(-1, *a.shape[-2:]) if batch else a[None]
        items_b, heads = _shared(b, batch)
        if self._together:
            self._method(items_a, items_b, out=items_out)
            return
        for i in range(len(items_a)):
            self._within_memory(items_a[i], items_b[i // heads], items_out[i])

    def _within_memory(self, a: Tensor, b: Tensor, out: Tensor) -> None:
        try:
            self._method(a, b, out)
            return
        except torch.OutOfMemoryError:
            if self._spare is None:
                raise PlanError(f"{self.request} does not fit in the memory of {a.device}") from None
            warnings.warn(f"{a.device} has too little memory for the sums of a scheme: strips are run", stacklevel=4)
        self._spare(a, b, out)


def _shared(b: Tensor, batch: tuple[int, ...]) -> tuple[Tensor, int]:
    """Return b as (items / heads, k, n), each for `heads` consecutive items (1 unless trailing axes broadcast)."""
    if not batch:
        return b[None], 1
    sizes = (*[1] * (len(batch) - (b.dim() - 2)), *b.shape[:-2])
    heads, axis = 1, len(batch)
    while axis and sizes[axis - 1] == 1:
        axis -= 1
        heads *= batch[axis]
    if tuple(sizes[:axis]) == tuple(batch[:axis]):
        return b.reshape(-1, *b.shape[-2:]), heads
    return b.expand(*batch, *b.shape[-2:]).reshape(-1, *b.shape[-2:]), 1
