"""From a request and proven schemes to a plan."""

from .auto import Decision, decide, plain_plan
from .candidates import choices
from .nesting import arrangements, levels_of
from .planner import plan

__all__ = ["Decision", "arrangements", "choices", "decide", "levels_of", "plain_plan", "plan"]
