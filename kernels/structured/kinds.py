"""Structures of factored matrices by their texts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...errors import PlanError
from .block_low_rank import Blast, LowRank, Monarch
from .chain import FactorChain, KroneckerSparse
from .pattern import parse_patterns

_CLASSES: dict[str, type[Any]] = {one.kind: one for one in (LowRank, Monarch, Blast)}


@lru_cache(maxsize=1024)
def parse_structure(text: str) -> FactorChain:
    """Parse the text of a structure, see `FactorChain.text`.

    Raises:
        PlanError: the text is no structure.
    """
    if text.startswith("("):
        return KroneckerSparse(parse_patterns(text))
    kind, *sizes = text.split(" ")
    try:
        found: FactorChain = _CLASSES[kind](*map(int, sizes))
    except (KeyError, TypeError, ValueError):
        raise PlanError(f"{text[:60]!r} names no structure") from None
    return found
