"""Kronecker-sparse products: patterns, matrices, and the strategies of products. Names are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .products.factored import matmul as matmul
    from .products.fourier import dft as dft
    from .products.scipy_operator import linear_operator as linear_operator
    from .structured.approximation import factorize as factorize
    from .structured.chain import KroneckerSparse as KroneckerSparse
    from .structured.constructions import block_butterfly as block_butterfly
    from .structured.constructions import deformable_butterfly as deformable_butterfly
    from .structured.constructions import dense as dense
    from .structured.constructions import kaleidoscope as kaleidoscope
    from .structured.constructions import low_rank as low_rank
    from .structured.constructions import monarch as monarch
    from .structured.constructions import square_dyadic as square_dyadic
    from .structured.layouts import from_layout as from_layout
    from .structured.layouts import to_layout as to_layout
    from .structured.matrix import FactoredMatrix as FactoredMatrix
    from .structured.matrix import load as load
    from .structured.matrix import save as save
    from .structured.pattern import Pattern as Pattern

_MODULES = {
    "structured.approximation": ("factorize",),
    "structured.constructions": (
        "block_butterfly",
        "deformable_butterfly",
        "dense",
        "kaleidoscope",
        "low_rank",
        "monarch",
        "square_dyadic",
    ),
    "products.fourier": ("dft",),
    "structured.layouts": ("from_layout", "to_layout"),
    "structured.matrix": ("FactoredMatrix", "load", "save"),
    "structured.pattern": ("Pattern",),
    "products.factored": ("matmul",),
    "products.scipy_operator": ("linear_operator",),
    "structured.chain": ("KroneckerSparse",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __package__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
