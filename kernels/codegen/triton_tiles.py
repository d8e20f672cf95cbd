"""Launch parameters of generated kernels: the tile of a program, its warps, and its prefetch distance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..measured import measured
from .maps import LinearMap
from .order import peak_alive

ACCESS = 16
"""Maximum bytes that one instruction of a thread reads or writes; less than WORD of them waste half a sector."""

WORD = 4

SPARE, MOST_REGISTERS = 24, 216
"""Registers of a thread for addresses; and the limit of the estimated total, below the 255 available."""

EASY = 96
"""Registers for values that leave room for enough warps: a thread computes as many elements as fit in them."""

FLYING = 48 * 1024
"""Bytes in flight to a multiprocessor that hide the memory latency: bandwidth times latency, plus a half."""

FILE = 65536
"""Registers of a multiprocessor."""


@dataclass(frozen=True)
class CombineTile:
    """Rows and columns of a program's tile, its warps, and how many sources are loaded ahead of their use."""

    rows: int
    cols: int
    warps: int
    ahead: int = 0

    def __str__(self) -> str:
        return f"{self.rows}x{self.cols} {self.warps} warps +{self.ahead}"

    @property
    def elements(self) -> int:
        """Elements of each source and result that a thread computes."""
        return self.rows * self.cols // (32 * self.warps)


MEASURED = {tuple(sizes): CombineTile(*tile) for sizes, tile in measured("codegen").tiles}
"""Fastest tiles on an H200 by sources, results and bytes of an element."""


def tile_of(linear: LinearMap, itemsize: int, transposed: bool = False) -> CombineTile:
    """Return the tile of a map: measured, else estimated.

    `transposed`: matrix and stack are contiguous in different directions, so that a tile must be
    wide in both.
    """
    if transposed:
        return _turning(linear, itemsize)
    known = MEASURED.get((linear.sources, len(linear.results), itemsize))
    return known or _estimated(linear, itemsize)


def _turning(linear: LinearMap, itemsize: int) -> CombineTile:
    """Return the tile of a transposing map.

    float32, float64: measured on an H200, 10 to 64 sources, 34 and 226 results.
    """
    values = _values(linear, itemsize)
    if itemsize == 1:  # not measured: rows of two sectors where registers allow it
        return CombineTile(64, 64, 8) if values <= 8 else CombineTile(32, 32, 8)
    if itemsize == 4:
        return CombineTile(64, 16, 8)
    if itemsize == 8:
        return CombineTile(32, 32, 4) if values <= 64 else CombineTile(32, 16, 8)
    return (
        CombineTile(32, 32, 8) if values <= 32 else CombineTile(32, 16, 8) if values <= 64 else CombineTile(16, 16, 8)
    )


@lru_cache(maxsize=512)
def _estimated(linear: LinearMap, itemsize: int) -> CombineTile:
    values = _values(linear, itemsize)
    elements = min(max(EASY // values, WORD // itemsize, 1), ACCESS // itemsize)
    elements = 1 << (elements.bit_length() - 1)
    return _tile(linear, itemsize, elements, 4)


def candidates(linear: LinearMap, itemsize: int) -> Iterator[CombineTile]:
    """Yield tiles worth measuring, the estimated one first: more or fewer elements, warps, sources ahead."""
    first = _estimated(linear, itemsize)
    found = [
        first,
        CombineTile(1, 64 * first.elements, 2, first.ahead),
        CombineTile(1, 256 * first.elements, 8, first.ahead),
    ]
    for elements in (first.elements * 2, first.elements // 2):
        fits = elements * _values(linear, itemsize) + SPARE <= MOST_REGISTERS
        if elements and fits and WORD <= elements * itemsize <= ACCESS:
            found.append(_tile(linear, itemsize, elements, 4))
    found += [
        CombineTile(1, first.cols, 4, ahead) for ahead in (first.ahead // 2, 2 * first.ahead) if ahead < linear.sources
    ]
    return iter(dict.fromkeys(found))


def _tile(linear: LinearMap, itemsize: int, elements: int, warps: int) -> CombineTile:
    """Return the tile with so many elements per thread, and enough sources ahead to hide the memory latency."""
    held = elements * _values(linear, itemsize) + SPARE
    each = elements * itemsize / WORD
    ahead = flying = 0
    while ahead < linear.sources and flying < FLYING and held + (ahead + 1) * each <= MOST_REGISTERS:
        ahead += 1
        resident = FILE // (32 * int(held + ahead * each))
        flying = resident * 32 * elements * itemsize * ahead
    return CombineTile(1, 32 * warps * elements, warps, ahead)


@lru_cache(maxsize=512)
def _values(linear: LinearMap, itemsize: int) -> int:
    """Return the 32-bit values that an element needs at once: float64 is added in float64, all else in float32."""
    return peak_alive(linear) * (2 if itemsize == 8 else 1)
