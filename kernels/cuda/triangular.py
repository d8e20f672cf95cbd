"""Triangular products on a GPU by one Triton kernel that skips absent tiles."""

from __future__ import annotations

from ...errors import PlanError
from ...schemes_db.symmetry import Triangle
from ..arrays import Tensor, torch
from .stack import TILE as STACK_TILE
from .stack import multiply_stack, programs_of
from .tiles import SIDES, Tile, launch, tile_table

MOST_ITEMS = 65535
"""Maximum number of matrices of one launch: the limit of the second axis of a grid."""

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


def on_tiles(
    a: Tensor, b: Tensor, triangle: Triangle, out: Tensor, *, unit: bool = False, tile: Tile = STACK_TILE
) -> bool:
    """Compute the product, as `multiply`, by the kernel of `stack`; return False without launching if unsupported."""
    order = tile_table(out.shape[1], out.shape[2], triangle, tile, str(a.device), True)
    return multiply_stack(a, b, out, tiles=order, side=triangle.side, upper=triangle.upper, unit=unit, tile=tile)


def multiply(
    a: Tensor, b: Tensor, triangle: Triangle, out: Tensor | None = None, *, unit: bool = False, tile: Tile | None = None
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
    if tile is None and fills and on_tiles(a, b, triangle, out, unit=unit):
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
            UNIT=unit,
            EXACT=m % tile.m == 0 and n % tile.n == 0 and k % tile.k == 0,
            PRECISION="tf32" if rounded else "ieee",
            DOUBLE=name == "float64",
        )
    return out
