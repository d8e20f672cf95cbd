"""Floor 3: a proven scheme becomes a program, the program code, the code products of matrices."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .decide import plan as plan
    from .multiply import executor_for as executor_for
    from .multiply import finite as finite
    from .multiply import matmul as matmul
    from .multiply import plan_for as plan_for
    from .multiply import prepare as prepare
    from .prepared import Prepared as Prepared
    from .profile import Profile as Profile
    from .request import Layout as Layout
    from .request import OperandKind as OperandKind
    from .request import Request as Request
    from .strategy import Candidate as Candidate
    from .strategy import Executor as Executor
    from .strategy import Plan as Plan
    from .strategy import Stage as Stage
    from .strategy import Strategy as Strategy
    from .strategy import register_strategy as register_strategy
    from .strategy import strategies as strategies
    from .workspace import Pool as Pool

_MODULES = {
    "Candidate": "strategy",
    "Executor": "strategy",
    "Layout": "request",
    "OperandKind": "request",
    "Plan": "strategy",
    "Pool": "workspace",
    "Prepared": "prepared",
    "Profile": "profile",
    "Request": "request",
    "Stage": "strategy",
    "Strategy": "strategy",
    "executor_for": "multiply",
    "finite": "multiply",
    "matmul": "multiply",
    "plan": "decide",
    "plan_for": "multiply",
    "prepare": "multiply",
    "register_strategy": "strategy",
    "strategies": "strategy",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
