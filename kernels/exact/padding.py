"""Zero padding of a level's operands to whole blocks."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from ..cpu.threads import parallel_rows
from .schemes import RingLevel

Shape = tuple[int, int]


def padded_shapes(shapes: tuple[Shape, Shape], blocks: tuple[Shape, Shape], level: RingLevel) -> list[Shape | None]:
    """Return the padded shapes of A and of B; None for an operand of whole blocks."""
    gm, gk, gn = level.grid
    found: list[Shape | None] = []
    for shape, (rows, cols), (down, across) in zip(shapes, blocks, ((gm, gk), (gk, gn)), strict=True):
        whole = down * rows, across * cols
        found.append(None if shape == whole else whole)
    return found


def padded(matrix: npt.NDArray[Any], target: Any, threads: int) -> Any:
    """Copy the matrix to the first rows and columns of target, with zeros elsewhere."""
    from .combine import pad_rows

    parallel_rows(lambda i, j: pad_rows(matrix, target, i, j), len(target), threads)
    return target
