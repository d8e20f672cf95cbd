"""Execution: compile proven schemes to programs, programs to code, and multiply matrices by it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_MODULES = {
    "BitMatrix": "products.exact",
    "BlockMask": "structure",
    "Candidate": "planning.strategy",
    "Decision": "planning.planner",
    "Dense": "structure",
    "Executor": "planning.strategy",
    "Layout": "request",
    "Machine": "planning.machine",
    "Plan": "planning.strategy",
    "Pool": "cpu.workspace",
    "Prepared": "products.prepared",
    "Profile": "planning.profile",
    "Proposal": "planning.strategy",
    "Request": "request",
    "Stage": "planning.strategy",
    "Strategy": "planning.strategy",
    "Structure": "structure",
    "Triangular": "structure",
    "decision_for": "plans.decisions",
    "executor_for": "plans.decisions",
    "finite": "api",
    "machine_for": "plans.families",
    "matmul": "api",
    "plan": "api",
    "plan_for": "plans.decisions",
    "prepare": "api",
    "register_strategy": "planning.strategy",
    "strategies": "plans.families",
    "tune": "plans.tuning",
    "unregister_strategy": "planning.strategy",
}


def __getattr__(name: str) -> Any:
    if name in ("block_low_rank", "kronecker"):
        return import_module(f".{name}", __name__)
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
