"""Triangular products on a GPU by one Triton kernel that skips what is not there."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...errors import PlanError
from ...schemes_db.symmetry import Triangle
from .launch import starter
from .stack import TILE as STACK_TILE
from .stack import StackTile, multiply_stack, programs_of

Tensor = Any

MOST_ITEMS = 65535
"""Most matrices of one launch: the limit of the second axis of a grid."""

GROUP = 8
"""Rows of tiles that are worked together, so that they find each other's operands in the cache."""


WAVES = 2
"""Large tiles for every multiprocessor from which on programs that stay are worth it."""


@dataclass(frozen=True)
class Tile:
    """The tile of one program, and how the compiler is to work it."""

    m: int
    n: int
    k: int
    warps: int
    stages: int


TILES = {
    "bfloat16": Tile(128, 256, 64, 8, 3),
    "float16": Tile(128, 256, 64, 8, 3),
    "tf32": Tile(128, 128, 32, 8, 4),
    "float32": Tile(64, 64, 32, 4, 3),
    "float64": Tile(64, 64, 16, 4, 2),
}
"""By dtype; float32 is strict, on the scalar units."""

SMALL_TILE = Tile(64, 64, 32, 4, 3)
"""For matrices that the large tile would not fill."""


def tile_for(dtype: str, m: int, n: int) -> Tile:
    """The tile for a product of m x n."""
    large = TILES[dtype]
    return large if min(m // large.m, n // large.n) >= 4 or dtype == "float64" else SMALL_TILE


def tile_places(rows: int, cols: int, triangle: Triangle, tile: Tile | StackTile) -> list[tuple[int, int]]:
    """The tiles that are worked, long ones first where their lengths differ, neighbours together.

    Of a wanted triangle those that touch it; else all of a (rows, cols) product.
    """
    down, across = -(-rows // tile.m), -(-cols // tile.n)
    places = []
    for top in range(0, down, GROUP):
        for j in range(across):
            for i in range(top, min(top + GROUP, down)):
                if triangle.side == "out":
                    high, low = i * tile.m, min((i + 1) * tile.m, rows) - 1
                    left, right = j * tile.n, min((j + 1) * tile.n, cols) - 1
                    if (right < high) if triangle.upper else (left > low):
                        continue
                places.append((i, j))
    # The last tiles to start should be short, or all wait for them.
    long_last = (triangle.side == "left" and not triangle.upper) or (triangle.side == "right" and triangle.upper)
    return places[::-1] if long_last else places


@lru_cache(maxsize=128)
def _table(rows: int, cols: int, triangle: Triangle, tile: Tile, device: str) -> Tensor:
    import torch

    places = tile_places(rows, cols, triangle, tile)
    return torch.tensor(places, dtype=torch.int32).to(device)


@lru_cache(maxsize=128)
def _order(rows: int, cols: int, triangle: Triangle, tile: StackTile, device: str) -> Tensor:
    """All tiles of a product: those of its triangle as `tile_places`, then those that are zero."""
    import torch

    inside = tile_places(rows, cols, triangle, tile)
    every = {(i, j) for i in range(-(-rows // tile.m)) for j in range(-(-cols // tile.n))}
    return torch.tensor([*inside, *sorted(every - set(inside))], dtype=torch.int32).to(device)


def on_tiles(
    a: Tensor, b: Tensor, triangle: Triangle, out: Tensor, *, unit: bool = False, tile: StackTile = STACK_TILE
) -> bool:
    """The triangular product by the kernel of `gpu.stack`, as `multiply`; False, nothing done, where it can't be."""
    order = _order(out.shape[1], out.shape[2], triangle, tile, str(a.device))
    return multiply_stack(a, b, out, tiles=order, side=triangle.side, upper=triangle.upper, unit=unit, tile=tile)


def multiply(
    a: Tensor,
    b: Tensor,
    triangle: Triangle,
    out: Tensor | None = None,
    *,
    unit: bool = False,
    tile: Tile | None = None,
) -> Tensor:
    """The triangular product of a (items, m, k) and b (items / heads, k, n), for any strides; zero outside a triangle.

    float64 sums in float64, everything else in float32; float32 is multiplied as torch is told to
    (allow_tf32).

    Raises:
        PlanError: Triton is not installed, or the dtype is not one of a GPU's floats.
    """
    import torch

    try:
        from .triangular_kernel import LEFT, OUT, RIGHT, triangular_gemm
    except ImportError:
        raise PlanError("triangular products on a GPU need Triton: pip install 'lcma[torch]' on Linux") from None
    name = str(a.dtype).removeprefix("torch.")
    if name not in TILES:
        raise PlanError(f"dtype {name} is not worked on a GPU; convert to one of {', '.join(TILES)}")
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
        out.zero_()  # the tiles that are left out
    tile = tile_for("tf32" if rounded else name, m, n) if tile is None else tile
    heads = items // len(b)
    table = _table(m, n, triangle, tile, str(a.device))
    with torch.cuda.device(a.device) if a.is_cuda else nullcontext():
        step = MOST_ITEMS // heads * heads or heads
        for start in range(0, items, step):
            count = min(step, items - start)
            starter(triangular_gemm, (len(table), count), a)(
                a[start:],
                b[start // heads :],
                out[start:],
                table,
                m,
                k,
                n,
                *a.stride(),
                *b.stride(),
                *out.stride(),
                heads,
                SIDE={"out": OUT, "left": LEFT, "right": RIGHT}[triangle.side],
                UPPER=triangle.upper,
                UNIT=unit,
                EXACT=m % tile.m == 0 and n % tile.n == 0 and k % tile.k == 0,
                PRECISION="tf32" if rounded else "ieee",
                DOUBLE=name == "float64",
                M=tile.m,
                N=tile.n,
                K=tile.k,
                num_warps=tile.warps,
                num_stages=tile.stages,
            )
    return out
