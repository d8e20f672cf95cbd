"""The strategies for processors."""

from .batch import BatchStrategy
from .naive import NaiveStrategy

STRATEGIES = (BatchStrategy(), NaiveStrategy())
