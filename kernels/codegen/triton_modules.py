"""Generated Triton kernels: each written to a file and imported."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .modules import load
from .triton_text import Combine, combine_text

MAX_ALIVE = 220
"""Maximum number of 32-bit values of one element alive at once: more do not fit in 255 registers."""


@lru_cache(maxsize=512)
def combine_kernel(work: Combine) -> Any:
    """Return the Triton kernel of a combination (see `combine_text` for its arguments); equal ones share one.

    Its text is in a file named by its hash in the cache folder; Triton caches the compiled code.
    """
    return load(combine_text(work)).combine
