"""What the rows of a suite come to together: geometric means, and losses against the best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


def geometric(values: Sequence[float]) -> float | None:
    """The geometric mean; None of no values."""
    return float(np.exp(np.mean(np.log(values)))) if values else None


def losses(found: Mapping[str, float], mean: float, bar: float, worst: Callable[[str], float]) -> dict[str, Any]:
    """The mean and the greatest of losses by key, whether they are at most `mean` and `worst(key)`, shown as `bar`."""
    middle = geometric([1 + loss for loss in found.values()])
    greatest = max(found, key=lambda key: found[key], default="")
    within = middle is not None and all(loss <= worst(key) for key, loss in found.items())
    return {
        "shapes": len(found),
        "mean_loss": None if middle is None else middle - 1,
        "worst_loss": found.get(greatest),
        "worst": greatest or None,
        "bars": {"mean": [mean, middle is not None and middle - 1 <= mean], "worst": [bar, within]},
    }
