"""The layer sizes that benchmarks and plans are asked about."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

MODEL_ROWS = range(512, 20481, 512)
"""The values of M that the paper takes for every layer: 24 layers x 40 = 960 products."""


@dataclass(frozen=True)
class Layer:
    """A linear layer of a model: K inputs, N outputs. `exact`: from the model's own configuration."""

    model: str
    layer: str
    k: int
    n: int
    source: str
    exact: bool


@lru_cache(maxsize=1)
def layers() -> tuple[Layer, ...]:
    """The 24 layers of FalconGEMM's evaluation (arXiv:2605.06057, section IV)."""
    text = (files(__package__) / "data" / "workloads.json").read_text(encoding="utf-8")
    return tuple(
        Layer(row["model"], row["layer"], row["K"], row["N"], row["source"], row["exact"])
        for row in json.loads(text)["layers"]
    )


def sample(count: int, most_rows: int = 8192, most_bytes: int = 2 << 30, itemsize: int = 4) -> list[tuple[int, Layer]]:
    """`count` products (M, layer) spread over layers and M <= most_rows, none larger than `most_bytes` in all."""
    rows = [m for m in MODEL_ROWS if m <= most_rows]
    every = [
        (m, layer)
        for i, layer in enumerate(layers())
        for m in rows[i % 3 :: 3]
        if itemsize * (m * layer.k + layer.k * layer.n + m * layer.n) <= most_bytes
    ]
    return [every[i * len(every) // count] for i in range(min(count, len(every)))]
