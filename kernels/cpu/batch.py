"""Strategy "batch": make all sums of a level, multiply them by BLAS, add the products up."""

from __future__ import annotations

import math

from ...errors import PlanError
from ...schemes_db.program import Program
from ..codegen.maps import has_fractions, maps_of
from ..executor import MatrixExecutor, copy_bytes, is_empty
from ..profile import Profile
from ..request import OperandKind, Request
from ..strategy import Executor, Stage
from ..workspace import Pool
from .level import core_of, size_reason
from .timing import timed


class BatchStrategy:
    """Materialises the sums of A and B, runs every product into a buffer, and merges.

    Measured best of the ways tried on processors; it needs the memory of all sums and products of
    a level at once, and that of one product of the next.
    """

    name = "batch"
    version = 1

    def can_run(self, program: Program, request: Request, profile: Profile) -> str | None:
        """See `Strategy.can_run`."""
        if reason := basic_reason(program, request):
            return reason
        try:
            _check_levels(program)
        except PlanError as error:
            return str(error)
        return None

    def predict(self, program: Program, request: Request, profile: Profile) -> list[Stage]:
        """See `Strategy.predict`."""
        if is_empty(request):
            return []
        stages = core_of(program, request).stages(math.prod(request.batch))
        return timed(stages, request.dtype, profile)

    def workspace(self, program: Program, request: Request) -> int:
        """See `Strategy.workspace`; exact."""
        return 0 if is_empty(request) else core_of(program, request).workspace + sum(copy_bytes(request))

    def build(self, program: Program, request: Request, pool: Pool | None = None) -> Executor:
        """See `Strategy.build`."""
        if is_empty(request):
            return MatrixExecutor(request, None, pool)
        core = core_of(program, request)
        core.compile()
        return MatrixExecutor(request, core, pool)


def _check_levels(program: Program) -> None:
    maps_of(program)
    for _, inner in program.inner:
        _check_levels(inner)


def basic_reason(program: Program, request: Request) -> str | None:
    """Why no strategy on a processor can run this, or None."""
    if request.device != "cpu":
        return f"runs on cpu, not on {request.device}"
    if any(kind is not OperandKind.DENSE for kind in request.operands):
        return f"operands must be dense, not {' and '.join(request.operands)}"
    if program.ring.characteristic:
        return f"the program holds over {program.ring} only; lift its scheme to Z first"
    if program.inner and not program.target.block_recursive:
        return f"{program.target} is exact for scalars only and cannot recurse"
    if request.dtype == "int64" and has_fractions(program):
        return "the program has fractions: an int64 product needs a scheme over Z"
    return size_reason(program, request.shape)
