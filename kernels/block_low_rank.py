"""Block low-rank products: low-rank, Monarch and BLAST matrices, and the strategies that multiply by them.

Names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .products.factored import matmul as matmul
    from .structured.block_low_rank import Blast as Blast
    from .structured.block_low_rank import LowRank as LowRank
    from .structured.block_low_rank import Monarch as Monarch
    from .structured.decomposition import decompose as decompose
    from .structured.matrix import FactoredMatrix as FactoredMatrix
    from .structured.matrix import from_kronecker as from_kronecker
    from .structured.matrix import load as load
    from .structured.matrix import save as save
    from .structured.matrix import to_kronecker as to_kronecker
    from .structured.published_layouts import from_layout as from_layout
    from .structured.published_layouts import to_layout as to_layout

_MODULES = {
    "structured.decomposition": ("decompose",),
    "structured.published_layouts": ("from_layout", "to_layout"),
    "structured.matrix": ("FactoredMatrix", "from_kronecker", "load", "save", "to_kronecker"),
    "products.factored": ("matmul",),
    "structured.block_low_rank": ("Blast", "LowRank", "Monarch"),
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
