"""The strategies for processors."""

from .batch import ALL_LEVELS, LevelStrategy
from .gemm import GemmStrategy
from .naive import NaiveStrategy

STRATEGIES = (
    GemmStrategy(),
    LevelStrategy("batch"),
    LevelStrategy("tasks", tasks=True),
    LevelStrategy("loop", loops=1),
    LevelStrategy("depth-first", loops=ALL_LEVELS),
    NaiveStrategy(),
)
