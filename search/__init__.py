"""Floor 3: discovery of new schemes. Importing it imports no compiler."""

# ruff: noqa: F401

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what __getattr__ gives, for tools that read types
    from .basis.sparsify import sparsified
    from .cpsat.brent import Solved, solve
    from .cpsat.recombine import Recombined, recombine
    from .flipgraph.graph import FlipGraph, flip_graph
    from .flipgraph.policy import Policy, Selection
    from .flipgraph.walkers import Walker, make_walker, pack_start, register_walk, walk_names, walk_policy
    from .format_moves.registry import format_move_names, register_format_move
    from .improve.gaps import Gap, formats_up_to
    from .lifting.batch import PoolLift, lift_pool
    from .lifting.lift import Lift, lift
    from .lifting.ternary import ternary_lift
    from .runs.bounds import common_products, kept_first
    from .runs.config import RunConfig
    from .runs.engine import Engine, Session, Walks, device_names, register_engine
    from .runs.locked_folder import RunFolderError
    from .runs.objectives import objective_names, register_objective, score_of
    from .runs.plan import ALONE, PoolPlan, Setting
    from .runs.pools import RankPools
    from .runs.result import Find, Progress, Result, Unlifted
    from .runs.run import carry_out, find, footprint, resume
    from .runs.run_status import Status, merge, status
    from .runs.stages import FormatStage, formats_below
    from .slp.additions import Additions, fewer_additions
    from .slp.anneal import polished
    from .slp.minimise import fewest_additions
    from .terms.orbits import OrbitTerms
    from .terms.packed import PackedTerms
    from .terms.ternary import TermsModulo3, TernaryTerms

_MODULES = {
    ".basis.sparsify": ("sparsified",),
    ".cpsat.brent": ("Solved", "solve"),
    ".cpsat.recombine": ("Recombined", "recombine"),
    ".flipgraph.graph": ("FlipGraph", "flip_graph"),
    ".flipgraph.policy": ("Policy", "Selection"),
    ".flipgraph.walkers": ("Walker", "make_walker", "pack_start", "register_walk", "walk_names", "walk_policy"),
    ".format_moves.registry": ("format_move_names", "register_format_move"),
    ".improve.gaps": ("Gap", "formats_up_to"),
    ".lifting.batch": ("PoolLift", "lift_pool"),
    ".lifting.lift": ("Lift", "lift"),
    ".lifting.ternary": ("ternary_lift",),
    ".runs.bounds": ("common_products", "kept_first"),
    ".runs.config": ("RunConfig",),
    ".runs.engine": ("Engine", "Session", "Walks", "device_names", "register_engine"),
    ".runs.locked_folder": ("RunFolderError",),
    ".runs.objectives": ("objective_names", "register_objective", "score_of"),
    ".runs.plan": ("ALONE", "PoolPlan", "Setting"),
    ".runs.pools": ("RankPools",),
    ".runs.result": ("Find", "Progress", "Result", "Unlifted"),
    ".runs.run": ("carry_out", "find", "footprint", "resume"),
    ".runs.run_status": ("Status", "merge", "status"),
    ".runs.stages": ("FormatStage", "formats_below"),
    ".slp.additions": ("Additions", "fewer_additions"),
    ".slp.anneal": ("polished",),
    ".slp.minimise": ("fewest_additions",),
    ".terms.orbits": ("OrbitTerms",),
    ".terms.packed": ("PackedTerms",),
    ".terms.ternary": ("TermsModulo3", "TernaryTerms"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
