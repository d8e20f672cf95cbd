"""The tiles of products: their sizes, their order for a triangle, and the launch of a kernel that computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...schemes_db.symmetry import Triangle
from ..arrays import Tensor, torch
from .launch import on_device, starter

SIDES = ("", "out", "left", "right")
"""The position of the triangle, in the order of the kernels' numbers (SIDE); "": none."""

GROUP = 8
"""Rows of tiles that are computed together, so that they share operands in the cache."""


@dataclass(frozen=True)
class Tile:
    """The tile of one program, and its compilation parameters."""

    m: int
    n: int
    k: int
    warps: int
    stages: int


def tile_places(rows: int, cols: int, triangle: Triangle, tile: Tile) -> list[tuple[int, int]]:
    """Return the computed tiles, long ones first if their lengths differ, neighbours together.

    For a wanted triangle those that touch it; else all of a (rows, cols) product.
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
    # The last tiles to start should be short, or all programs wait for them.
    long_last = (triangle.side == "left" and not triangle.upper) or (triangle.side == "right" and triangle.upper)
    return places[::-1] if long_last else places


@lru_cache(maxsize=256)
def tile_table(rows: int, cols: int, triangle: Triangle, tile: Tile, device: str, every: bool) -> Tensor:
    """Return `tile_places` as int32 pairs on a device; with `every`, followed by the tiles that are zero."""
    places = tile_places(rows, cols, triangle, tile)
    if every:
        whole = {(i, j) for i in range(-(-rows // tile.m)) for j in range(-(-cols // tile.n))}
        places += sorted(whole - set(places))
    return torch.tensor(places, dtype=torch.int32).to(device)


def launch(
    kernel: Any, grid: tuple[int, ...], like: Tensor, arguments: Sequence[Any], tile: Tile, **constants: Any
) -> None:
    """Launch a kernel on the device of a tensor, with the constants M, N, K, the warps and the stages of a tile."""
    constants |= {"M": tile.m, "N": tile.n, "K": tile.k}
    with on_device(like):
        starter(kernel, grid, like)(*arguments, **constants, num_warps=tile.warps, num_stages=tile.stages)
