"""Block low-rank products: low-rank, Monarch and BLAST matrices, and the strategies that multiply by them.

Names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conversion import from_kronecker as from_kronecker
    from .conversion import to_kronecker as to_kronecker
    from .decomposition import decompose as decompose
    from .files import load as load
    from .files import save as save
    from .layouts import from_layout as from_layout
    from .layouts import to_layout as to_layout
    from .matrix import BlockLowRankMatrix as BlockLowRankMatrix
    from .products import matmul as matmul
    from .structure import Blast as Blast
    from .structure import LowRank as LowRank
    from .structure import Monarch as Monarch

_MODULES = {
    "conversion": ("from_kronecker", "to_kronecker"),
    "decomposition": ("decompose",),
    "files": ("load", "save"),
    "layouts": ("from_layout", "to_layout"),
    "matrix": ("BlockLowRankMatrix",),
    "products": ("matmul",),
    "structure": ("Blast", "LowRank", "Monarch"),
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
