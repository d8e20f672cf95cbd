"""Floor 3: discovery of new schemes. Importing it imports no compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import names_on_first_use

if TYPE_CHECKING:
    from .basis.shears import sparsified as sparsified
    from .cpsat.brent import Solved as Solved
    from .cpsat.brent import solve as solve
    from .cpsat.recombine import Recombined as Recombined
    from .cpsat.recombine import recombine as recombine
    from .flipgraph.graph import FlipGraph as FlipGraph
    from .flipgraph.graph import flip_graph as flip_graph
    from .flipgraph.policy import Policy as Policy
    from .flipgraph.policy import Selection as Selection
    from .flipgraph.walkers import Walker as Walker
    from .flipgraph.walkers import Walks as Walks
    from .flipgraph.walkers import make_walker as make_walker
    from .flipgraph.walkers import pack_start as pack_start
    from .flipgraph.walkers import register_walk as register_walk
    from .flipgraph.walkers import walk_names as walk_names
    from .flipgraph.walkers import walk_policy as walk_policy
    from .lifting.lift import Lift as Lift
    from .lifting.lift import lift as lift
    from .lifting.ternary import PoolLift as PoolLift
    from .lifting.ternary import lift_pool as lift_pool
    from .lifting.ternary import ternary_lift as ternary_lift
    from .runs.bounds import common_products as common_products
    from .runs.bounds import kept_first as kept_first
    from .runs.config import RunConfig as RunConfig
    from .runs.engine import Engine as Engine
    from .runs.engine import Session as Session
    from .runs.engine import device_names as device_names
    from .runs.engine import register_engine as register_engine
    from .runs.locked_folder import RunFolderError as RunFolderError
    from .runs.objectives import register_objective as register_objective
    from .runs.objectives import score_of as score_of
    from .runs.plan import LadderPlan as LadderPlan
    from .runs.plan import Setting as Setting
    from .runs.result import Find as Find
    from .runs.result import Progress as Progress
    from .runs.result import Result as Result
    from .runs.result import Unlifted as Unlifted
    from .runs.run import carry_out as carry_out
    from .runs.run import find as find
    from .runs.run import resume as resume
    from .runs.run_status import Status as Status
    from .runs.run_status import merge as merge
    from .runs.run_status import status as status
    from .slp.additions import Additions as Additions
    from .slp.additions import fewer_additions as fewer_additions
    from .slp.additions import fewest_additions as fewest_additions
    from .slp.anneal import polished as polished
    from .terms.orbits import OrbitTerms as OrbitTerms
    from .terms.packed import PackedTerms as PackedTerms
    from .terms.ternary import TermsModulo3 as TermsModulo3
    from .terms.ternary import TernaryTerms as TernaryTerms

__getattr__, __dir__ = names_on_first_use(__name__)
