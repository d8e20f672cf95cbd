"""Floor 1: what a scheme and a program are, what they cost, and where they are kept."""

from .certificate import Certificate, Proof
from .program import Program, ProductKind
from .provenance import Provenance
from .ring import Q, Ring, Z, Z2, parse_ring
from .scheme import Scheme
from .target import Kind, Target, parse_target

__all__ = [
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
    "Z2",
    "parse_ring",
    "parse_target",
]
