"""Reasons why the strategies of the CPU cannot run a program."""

from __future__ import annotations

from ...schemes_db.program import Program
from ..codegen.maps import has_fractions
from ..overflow import range_reason
from ..request import Request
from .blas import backends
from .partition import size_reason


def basic_reason(program: Program | None, request: Request) -> str | None:
    """Return the reason why no strategy of the CPU can run this, or None."""
    if not any(backend.supports(request.dtype) for backend in backends()):
        return f"no installed library multiplies {request.dtype} on a processor; install torch"
    if program is None:
        return range_reason(None, request)
    if program.ring.characteristic:
        return f"the program holds over {program.ring} only; lift its scheme to Z first"
    if request.exact and has_fractions(program):
        return f"the program has fractions: an {request.dtype} product needs a scheme over Z"
    if request.dtype == "int8" and not program.target.is_general:
        return f"int8 products are of whole matrices, and {program.target} is not; convert with .astype(np.int32)"
    return size_reason(program, request.shape) or range_reason(program, request)
