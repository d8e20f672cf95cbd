"""Floor 1: what a scheme and a program are, what they cost, and where they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import names_on_first_use

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

__getattr__, __dir__ = names_on_first_use(__name__)
