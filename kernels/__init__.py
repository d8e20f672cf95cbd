"""Execution: compile proven schemes to programs, programs to code, and multiply matrices by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import names_on_first_use

if TYPE_CHECKING:
    from . import block_low_rank as block_low_rank
    from . import kronecker as kronecker
    from .api import finite as finite
    from .api import matmul as matmul
    from .api import plan as plan
    from .api import prepare as prepare
    from .cpu.workspace import Pool as Pool
    from .planning.machine import Machine as Machine
    from .planning.planner import Decision as Decision
    from .planning.profile import Profile as Profile
    from .planning.strategy import Candidate as Candidate
    from .planning.strategy import Executor as Executor
    from .planning.strategy import Plan as Plan
    from .planning.strategy import Proposal as Proposal
    from .planning.strategy import Stage as Stage
    from .planning.strategy import Strategy as Strategy
    from .planning.strategy import register_strategy as register_strategy
    from .planning.strategy import unregister_strategy as unregister_strategy
    from .plans.decisions import decision_for as decision_for
    from .plans.decisions import executor_for as executor_for
    from .plans.decisions import plan_for as plan_for
    from .plans.families import machine_for as machine_for
    from .plans.families import strategies as strategies
    from .plans.tuning import tune as tune
    from .products.exact import BitMatrix as BitMatrix
    from .products.prepared import Prepared as Prepared
    from .request import Layout as Layout
    from .request import Request as Request
    from .structure import BlockMask as BlockMask
    from .structure import Dense as Dense
    from .structure import Structure as Structure
    from .structure import Triangular as Triangular

__getattr__, __dir__ = names_on_first_use(__name__)
