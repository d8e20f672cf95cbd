"""Compilation of the kernels of a product that the caller waits for, because its scheme is named."""

from __future__ import annotations

import sys
from functools import partial

from ...errors import PlanError
from ..planning.strategy import Plan
from .bench import CudaBench, run_kernels
from .precompile import Kernel, compile_ahead, kernels_of

QUICK = 1.0
"""Seconds of compilation that are left to the launches: processes that compile take as long to start."""

CHARACTERS, POWER = 1.8e4, 1.8
"""A kernel of so many characters compiles in about a second, longer ones by this power of their length: measured for
sm_90 with Triton 3.7 on an EPYC, 0.07 s for 3,500 characters and 8.4 s for 60,000."""


def compile_now(plan: Plan) -> None:
    """Compile the missing kernels of a plan in parallel processes, and say so on stderr, if that takes a while."""
    try:
        a, b, out = CudaBench().operands(plan.request, 0, blank=True)
        call = partial(run_kernels, plan.build(), a, b, out)
    except PlanError:
        return  # the product itself says why it cannot run
    kernels = kernels_of([call])
    if sum(map(_seconds, kernels)) > QUICK:
        longest = max(map(_seconds, kernels))
        what = f"{len(kernels)} kernels of {plan.candidate}"
        print(
            f"lcma: compiling {what}, about {longest + QUICK:.0f} s; stored for later processes",
            file=sys.stderr,
            flush=True,
        )
        compile_ahead([call])


def _seconds(kernel: Kernel) -> float:
    """Return the estimated seconds of compilation."""
    return (len(kernel.text) / CHARACTERS) ** POWER
