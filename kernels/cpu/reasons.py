"""Why a strategy on a processor cannot run a program."""

from __future__ import annotations

from ...schemes_db.program import Program
from ..codegen.maps import has_fractions
from ..dtypes import dtype_of
from ..request import DTYPES, Request
from ..strategy import unfit
from .blas import backends
from .partition import size_reason


def basic_reason(program: Program, request: Request) -> str | None:
    """Why no strategy on a processor can run this, or None."""
    if reason := unfit(program, request, "cpu"):
        return reason
    if program.inner and not program.target.block_recursive:
        return f"{program.target} is exact for scalars only and cannot recurse"
    if dtype_of(request.dtype).exact and has_fractions(program):
        return f"the program has fractions: an {request.dtype} product needs a scheme over Z"
    if request.dtype not in DTYPES or not any(backend.works(request.dtype) for backend in backends()):
        return f"no installed library multiplies {request.dtype} on a processor; install torch"
    return size_reason(program, request.shape)
