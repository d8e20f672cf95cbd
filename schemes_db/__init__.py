"""Floor 1: what a scheme and a program are, what they cost, and where they are kept."""

from .certificate import Certificate, Proof
from .grids import Kind
from .program import ProductKind, Program
from .provenance import Provenance
from .ring import Z2, Q, Ring, Z, parse_ring
from .scheme import Scheme
from .target import Target, parse_target

__all__ = [
    "Z2",
    "Certificate",
    "Kind",
    "ProductKind",
    "Program",
    "Proof",
    "Provenance",
    "Q",
    "Ring",
    "Scheme",
    "Target",
    "Z",
    "parse_ring",
    "parse_target",
]
