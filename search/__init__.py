"""Floor 3: discovery of new schemes. Importing it imports no compiler."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from .runs.engine import Engine, Session, device_names, register_engine
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

_EXPORTS = {
    "ALONE": "runs.plan",
    "Additions": "slp.additions",
    "Find": "runs.result",
    "FlipGraph": "flipgraph.graph",
    "Gap": "improve.gaps",
    "Lift": "lifting.lift",
    "OrbitTerms": "terms.orbits",
    "PackedTerms": "terms.packed",
    "Policy": "flipgraph.policy",
    "Selection": "flipgraph.policy",
    "PoolLift": "lifting.batch",
    "PoolPlan": "runs.plan",
    "RankPools": "runs.pools",
    "Progress": "runs.result",
    "Recombined": "cpsat.recombine",
    "Result": "runs.result",
    "Session": "runs.engine",
    "Setting": "runs.plan",
    "Engine": "runs.engine",
    "RunConfig": "runs.config",
    "RunFolderError": "runs.locked_folder",
    "Solved": "cpsat.brent",
    "FormatStage": "runs.stages",
    "Status": "runs.run_status",
    "TermsModulo3": "terms.ternary",
    "TernaryTerms": "terms.ternary",
    "Unlifted": "runs.result",
    "Walker": "flipgraph.walkers",
    "carry_out": "runs.run",
    "common_products": "runs.bounds",
    "device_names": "runs.engine",
    "fewer_additions": "slp.additions",
    "fewest_additions": "slp.minimise",
    "find": "runs.run",
    "flip_graph": "flipgraph.graph",
    "footprint": "runs.run",
    "formats_below": "runs.stages",
    "formats_up_to": "improve.gaps",
    "kept_first": "runs.bounds",
    "lift": "lifting.lift",
    "lift_pool": "lifting.batch",
    "make_walker": "flipgraph.walkers",
    "merge": "runs.run_status",
    "objective_names": "runs.objectives",
    "pack_start": "flipgraph.walkers",
    "format_move_names": "format_moves.registry",
    "polished": "slp.anneal",
    "recombine": "cpsat.recombine",
    "register_engine": "runs.engine",
    "register_objective": "runs.objectives",
    "register_format_move": "format_moves.registry",
    "register_walk": "flipgraph.walkers",
    "resume": "runs.run",
    "score_of": "runs.objectives",
    "solve": "cpsat.brent",
    "sparsified": "basis.sparsify",
    "status": "runs.run_status",
    "ternary_lift": "lifting.ternary",
    "walk_names": "flipgraph.walkers",
    "walk_policy": "flipgraph.walkers",
}

__all__ = [
    "ALONE",
    "Additions",
    "Engine",
    "Find",
    "FlipGraph",
    "FormatStage",
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
    "Status",
    "TermsModulo3",
    "TernaryTerms",
    "Unlifted",
    "Walker",
    "carry_out",
    "common_products",
    "device_names",
    "fewer_additions",
    "fewest_additions",
    "find",
    "flip_graph",
    "footprint",
    "format_move_names",
    "formats_below",
    "formats_up_to",
    "kept_first",
    "lift",
    "lift_pool",
    "make_walker",
    "merge",
    "objective_names",
    "pack_start",
    "polished",
    "recombine",
    "register_engine",
    "register_format_move",
    "register_objective",
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
