"""Floor 3: discovery of new schemes. Importing it imports no compiler."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .additions import Additions, fewer_additions
    from .brentmodel import Solved, solve
    from .config import RunConfig
    from .explore import FlipGraph, flip_graph
    from .folder import RunFolderError
    from .lifting import Lift, lift
    from .orbits import OrbitTerms
    from .packed import PackedTerms
    from .policy import Policy
    from .polish import polished
    from .pool import fewest_additions
    from .poollift import PoolLift, lift_pool
    from .pools import PoolPlan, Pools
    from .recombining import Recombined, recombine
    from .result import Find, Progress, Result, Unlifted
    from .run import carry_out, find, footprint, resume
    from .sparsify import sparsified
    from .standing import Status, merge, status
    from .ternary import TernaryTerms
    from .walker import Walker, make_walker, pack_start, register_walk, walk_names, walk_policy

_EXPORTS = {
    "Additions": "additions",
    "Find": "result",
    "FlipGraph": "explore",
    "Lift": "lifting",
    "OrbitTerms": "orbits",
    "PackedTerms": "packed",
    "Policy": "policy",
    "PoolLift": "poollift",
    "PoolPlan": "pools",
    "Pools": "pools",
    "Progress": "result",
    "Recombined": "recombining",
    "Result": "result",
    "RunConfig": "config",
    "RunFolderError": "folder",
    "Solved": "brentmodel",
    "Status": "standing",
    "TernaryTerms": "ternary",
    "Unlifted": "result",
    "Walker": "walker",
    "carry_out": "run",
    "fewer_additions": "additions",
    "fewest_additions": "pool",
    "find": "run",
    "flip_graph": "explore",
    "footprint": "run",
    "lift": "lifting",
    "lift_pool": "poollift",
    "make_walker": "walker",
    "merge": "standing",
    "pack_start": "walker",
    "polished": "polish",
    "recombine": "recombining",
    "register_walk": "walker",
    "resume": "run",
    "solve": "brentmodel",
    "sparsified": "sparsify",
    "status": "standing",
    "walk_names": "walker",
    "walk_policy": "walker",
}

__all__ = [
    "Additions",
    "Find",
    "FlipGraph",
    "Lift",
    "OrbitTerms",
    "PackedTerms",
    "Policy",
    "PoolLift",
    "PoolPlan",
    "Pools",
    "Progress",
    "Recombined",
    "Result",
    "RunConfig",
    "RunFolderError",
    "Solved",
    "Status",
    "TernaryTerms",
    "Unlifted",
    "Walker",
    "carry_out",
    "fewer_additions",
    "fewest_additions",
    "find",
    "flip_graph",
    "footprint",
    "lift",
    "lift_pool",
    "make_walker",
    "merge",
    "pack_start",
    "polished",
    "recombine",
    "register_walk",
    "resume",
    "solve",
    "sparsified",
    "status",
    "walk_names",
    "walk_policy",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
