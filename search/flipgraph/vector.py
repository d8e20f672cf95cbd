"""Numbers of many walkers at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.int64]
"""(walkers,) numbers, or indices of some walkers."""
