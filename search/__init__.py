"""Floor 3: discovery of new schemes. Importing it imports no compiler."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .lifting import Lift, lift
    from .packed import PackedTerms
    from .policy import Policy
    from .result import Find, Progress, Result, Unlifted
    from .run import find
    from .sparsify import sparsified
    from .walker import Walker, make_walker, register_walk, walk_names

_EXPORTS = {
    "Find": "result",
    "Lift": "lifting",
    "PackedTerms": "packed",
    "Policy": "policy",
    "Progress": "result",
    "Result": "result",
    "Unlifted": "result",
    "Walker": "walker",
    "find": "run",
    "lift": "lifting",
    "make_walker": "walker",
    "register_walk": "walker",
    "sparsified": "sparsify",
    "walk_names": "walker",
}

__all__ = [
    "Find",
    "Lift",
    "PackedTerms",
    "Policy",
    "Progress",
    "Result",
    "Unlifted",
    "Walker",
    "find",
    "lift",
    "make_walker",
    "register_walk",
    "sparsified",
    "walk_names",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
