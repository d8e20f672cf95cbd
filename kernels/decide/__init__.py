"""From a request and proven schemes to a plan."""

from .nesting import arrangements, levels_of
from .planner import plan

__all__ = ["arrangements", "levels_of", "plan"]
