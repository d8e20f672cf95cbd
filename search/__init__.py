"""Floor 3: discovery of new schemes. Importing it imports no compiler."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .additions import Additions, fewer_additions
    from .bounds import common_products, kept_first
    from .brentmodel import Solved, solve
    from .chain import Stage, formats_below
    from .config import RunConfig
    from .explore import FlipGraph, flip_graph
    from .flippicture import draw
    from .folder import RunFolderError
    from .gaps import Gap, formats_up_to
    from .lifting import Lift, lift
    from .objectives import objective_names, register_objective, score_of
    from .orbits import OrbitTerms
    from .packed import PackedTerms
    from .passages import passage_names, register_passage
    from .plan import ALONE, PoolPlan, Setting
    from .policy import Policy, Selection
    from .polish import polished
    from .pool import fewest_additions
    from .poollift import PoolLift, lift_pool
    from .pools import RankPools
    from .recombining import Recombined, recombine
    from .result import Find, Progress, Result, Unlifted
    from .run import carry_out, find, footprint, resume
    from .session import Engine, Session, device_names, register_engine
    from .sparsify import sparsified
    from .standing import Status, merge, status
    from .ternarising import ternary_lift
    from .ternary import TermsModulo3, TernaryTerms
    from .walker import Walker, make_walker, pack_start, register_walk, walk_names, walk_policy

_EXPORTS = {
    "ALONE": "plan",
    "Additions": "additions",
    "Find": "result",
    "FlipGraph": "explore",
    "Gap": "gaps",
    "Lift": "lifting",
    "OrbitTerms": "orbits",
    "PackedTerms": "packed",
    "Policy": "policy",
    "Selection": "policy",
    "PoolLift": "poollift",
    "PoolPlan": "plan",
    "RankPools": "pools",
    "Progress": "result",
    "Recombined": "recombining",
    "Result": "result",
    "Session": "session",
    "Setting": "plan",
    "Engine": "session",
    "RunConfig": "config",
    "RunFolderError": "folder",
    "Solved": "brentmodel",
    "Stage": "chain",
    "Status": "standing",
    "TermsModulo3": "ternary",
    "TernaryTerms": "ternary",
    "Unlifted": "result",
    "Walker": "walker",
    "carry_out": "run",
    "common_products": "bounds",
    "device_names": "session",
    "draw": "flippicture",
    "fewer_additions": "additions",
    "fewest_additions": "pool",
    "find": "run",
    "flip_graph": "explore",
    "footprint": "run",
    "formats_below": "chain",
    "formats_up_to": "gaps",
    "kept_first": "bounds",
    "lift": "lifting",
    "lift_pool": "poollift",
    "make_walker": "walker",
    "merge": "standing",
    "objective_names": "objectives",
    "pack_start": "walker",
    "passage_names": "passages",
    "polished": "polish",
    "recombine": "recombining",
    "register_engine": "session",
    "register_objective": "objectives",
    "register_passage": "passages",
    "register_walk": "walker",
    "resume": "run",
    "score_of": "objectives",
    "solve": "brentmodel",
    "sparsified": "sparsify",
    "status": "standing",
    "ternary_lift": "ternarising",
    "walk_names": "walker",
    "walk_policy": "walker",
}

__all__ = [
    "ALONE",
    "Additions",
    "Engine",
    "Find",
    "FlipGraph",
    "Gap",
    "Lift",
    "OrbitTerms",
    "PackedTerms",
    "Policy",
    "PoolLift",
    "PoolPlan",
    "Progress",
    "RankPools",
    "Recombined",
    "Result",
    "RunConfig",
    "RunFolderError",
    "Selection",
    "Session",
    "Setting",
    "Solved",
    "Stage",
    "Status",
    "TermsModulo3",
    "TernaryTerms",
    "Unlifted",
    "Walker",
    "carry_out",
    "common_products",
    "device_names",
    "draw",
    "fewer_additions",
    "fewest_additions",
    "find",
    "flip_graph",
    "footprint",
    "formats_below",
    "formats_up_to",
    "kept_first",
    "lift",
    "lift_pool",
    "make_walker",
    "merge",
    "objective_names",
    "pack_start",
    "passage_names",
    "polished",
    "recombine",
    "register_engine",
    "register_objective",
    "register_passage",
    "register_walk",
    "resume",
    "score_of",
    "solve",
    "sparsified",
    "status",
    "ternary_lift",
    "walk_names",
    "walk_policy",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
