"""Floor 1: what a scheme and a program are, what they cost, and where they are kept."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .certificate import Certificate as Certificate
    from .certificate import Proof as Proof
    from .grids import Kind as Kind
    from .program import ProductKind as ProductKind
    from .program import Program as Program
    from .provenance import Provenance as Provenance
    from .ring import Z2 as Z2
    from .ring import Q as Q
    from .ring import Ring as Ring
    from .ring import Z as Z
    from .ring import parse_ring as parse_ring
    from .scheme import Scheme as Scheme
    from .target import Target as Target
    from .target import parse_target as parse_target

_MODULES = {
    "Certificate": "certificate",
    "Kind": "grids",
    "ProductKind": "program",
    "Program": "program",
    "Proof": "certificate",
    "Provenance": "provenance",
    "Q": "ring",
    "Ring": "ring",
    "Scheme": "scheme",
    "Target": "target",
    "Z": "ring",
    "Z2": "ring",
    "parse_ring": "ring",
    "parse_target": "target",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: the first product of a process needs no schemes."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value
