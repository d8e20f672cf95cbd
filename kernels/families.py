"""The strategies of this package by device."""

from __future__ import annotations

from .cuda.level import Method
from .dense.cpu import ALL_LEVELS, LevelStrategy
from .dense.naive import NaiveStrategy
from .dense.strategies_cuda import ThreeStageStrategy
from .dense.vendor import GemmStrategy
from .dense.vendor_cuda import VendorStrategy
from .planning.strategy import Strategy

CPU: tuple[Strategy, ...] = (
    GemmStrategy(),
    LevelStrategy("batch"),
    LevelStrategy("tasks", tasks=True),
    LevelStrategy("loop", loops=1),
    LevelStrategy("depth-first", loops=ALL_LEVELS),
    NaiveStrategy(),
)

CUDA: tuple[Strategy, ...] = (VendorStrategy(), *(ThreeStageStrategy(way) for way in Method))
