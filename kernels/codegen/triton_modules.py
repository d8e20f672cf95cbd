"""Generated Triton kernels: written to a file each, imported, and the tile that each is launched with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .modules import load
from .triton_order import peak_alive
from .triton_text import Combine, combine_text

MAX_ALIVE = 220
"""Most 32-bit values of one element that may be alive at once: past it they no longer fit in 255 registers."""


@dataclass(frozen=True)
class Tile:
    """Rows and columns that one program works, and its warps."""

    rows: int
    cols: int
    warps: int


@lru_cache(maxsize=512)
def combine_kernel(work: Combine) -> Any:
    """The Triton kernel of a combination (see `combine_text` for its arguments); equal ones share one.

    Its text is in a file named by its hash in the cache folder; Triton keeps the compiled code.
    """
    return load(combine_text(work)).combine


def alive(work: Combine) -> int:
    """32-bit values that an element needs at once."""
    return peak_alive(work.map) * (2 if work.double else 1)


def tile_of(values: int, transposed: bool = False) -> Tile:
    """How a combination with so many values alive is launched.

    A thread works as many elements as its registers hold, up to 4; past that the kernel is bound
    by memory and the tile does not matter. `transposed`: matrix and stack are contiguous in
    different directions, so that a tile must be wide in both.
    """
    elements = 4 if values <= 32 else 2 if values <= 64 else 1
    if transposed:
        return {4: Tile(32, 32, 8), 2: Tile(32, 16, 8), 1: Tile(16, 16, 8)}[elements]
    return Tile(1, 128 * elements, 4)
