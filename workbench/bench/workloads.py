"""Layer sizes for benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from .table import table

MODEL_ROWS = range(512, 20481, 512)
"""The values of M that the paper uses for every layer: 24 layers x 40 = 960 products."""

GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Layer:
    """A linear layer of a model: K inputs, N outputs.

    `exact`: all figures were published for this very model; else a size is that of its family.
    """

    model: str
    layer: str
    k: int
    n: int
    source: str
    exact: bool


@lru_cache(maxsize=1)
def layers() -> tuple[Layer, ...]:
    """Return the 24 layers of FalconGEMM's evaluation (arXiv:2605.06057, section IV).

    The paper counts them (11, 7 and 6) and does not list them: which layers stand here is our choice, their sizes are
    those of the sources.
    """
    return table(Layer, "workloads")


def sample(
    count: int,
    most_rows: int = 8192,
    most_bytes: int = 5 << 30,
    itemsize: int = 4,
    fits: Callable[[int, Layer], bool] = lambda m, layer: True,
) -> list[tuple[int, Layer]]:
    """Select `count` products (M, layer): cycle through the layers, with values of M spread up to `most_rows`.

    The matrices of a product take at most `most_bytes` in total, and `fits(M, layer)` is true; a layer without
    such an M is skipped.
    """
    known = layers()
    taken: list[tuple[int, Layer]] = []
    for i in range(min(count, len(known) * len(MODEL_ROWS))):
        layer = known[i % len(known)]
        rows = [
            m
            for m in MODEL_ROWS
            if m <= most_rows
            and itemsize * (m * layer.k + layer.k * layer.n + m * layer.n) <= most_bytes
            and fits(m, layer)
        ]
        if rows:
            # Steps of the golden section are evenly distributed for every count, and far from each other.
            taken.append((rows[int(i * GOLDEN % 1 * len(rows))], layer))
    return taken
