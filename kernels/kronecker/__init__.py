"""Kronecker-sparse products: patterns, matrices, and the strategies of products. Names are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .approximation import factorize as factorize
    from .constructions import block_butterfly as block_butterfly
    from .constructions import deformable_butterfly as deformable_butterfly
    from .constructions import dense as dense
    from .constructions import kaleidoscope as kaleidoscope
    from .constructions import low_rank as low_rank
    from .constructions import monarch as monarch
    from .constructions import square_dyadic as square_dyadic
    from .files import load as load
    from .files import save as save
    from .fourier import dft as dft
    from .layouts import from_layout as from_layout
    from .layouts import to_layout as to_layout
    from .matrix import KroneckerMatrix as KroneckerMatrix
    from .pattern import Pattern as Pattern
    from .products import matmul as matmul
    from .scipy_operator import linear_operator as linear_operator
    from .structure import KroneckerSparse as KroneckerSparse

_MODULES = {
    "approximation": ("factorize",),
    "constructions": (
        "block_butterfly",
        "deformable_butterfly",
        "dense",
        "kaleidoscope",
        "low_rank",
        "monarch",
        "square_dyadic",
    ),
    "files": ("load", "save"),
    "fourier": ("dft",),
    "layouts": ("from_layout", "to_layout"),
    "matrix": ("KroneckerMatrix",),
    "pattern": ("Pattern",),
    "products": ("matmul",),
    "scipy_operator": ("linear_operator",),
    "structure": ("KroneckerSparse",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
