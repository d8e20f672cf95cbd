"""Geometric means over the rows of a suite, kept beside its picture."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...home import write_atomic
from .picture import ratios

Rows = Sequence[Mapping[str, Any]]


def geometric(values: Sequence[float]) -> float | None:
    """The geometric mean; None of no values."""
    return float(np.exp(np.mean(np.log(values)))) if values else None


def summarised(summary: Callable[[Rows], Mapping[str, Any]]) -> Callable[[Rows, Path], None]:
    """A suite's picture that also writes what its rows come to together, as JSON of the same name."""

    def picture(rows: Rows, path: Path) -> None:
        ratios(rows, path)
        write_atomic(path.with_suffix(".json"), json.dumps(summary(rows), indent=1) + "\n")

    return picture
