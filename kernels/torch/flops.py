"""Flop formulas of the operators, registered when torch's flop counter is imported: it imports Triton itself."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

import torch

COUNTER = "torch.utils.flop_counter"

_formulas: dict[Any, Callable[..., int]] = {}


class _Finder(MetaPathFinder):
    """Finds no module itself, but registers the formulas when the flop counter has been executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != COUNTER:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            found = finder.find_spec(fullname, path, target)
            if found is not None and found.loader is not None:

                def executed(module: ModuleType, execute: Any = found.loader.exec_module) -> None:
                    execute(module)
                    for operator, formula in _formulas.items():
                        cast(Any, module).register_flop_formula(operator)(formula)

                cast(Any, found.loader).exec_module = executed
                return found
        return None


def flop_formula(operator: Any) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the decorator of an operator's flop formula, as torch's `register_flop_formula`."""

    def decorated(formula: Callable[..., int]) -> Callable[..., int]:
        if (counter := sys.modules.get(COUNTER)) is not None:
            counter.register_flop_formula(operator)(formula)
        elif not _formulas:
            sys.meta_path.insert(0, _Finder())
        _formulas[operator] = formula
        return formula

    return decorated


def classical_flops(a_shape: Any, b_shape: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    """Return 2 m k n per matrix: the classical product's operations, so that rates are comparable."""
    batch = torch.broadcast_shapes(tuple(a_shape[:-2]), tuple(b_shape[:-2]))
    return 2 * math.prod(batch) * a_shape[-2] * a_shape[-1] * b_shape[-1]
