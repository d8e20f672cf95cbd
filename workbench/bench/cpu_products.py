"""Products that compete on a processor: the libraries, and plans of ours, checked and then timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ...kernels import Candidate, Decision, Plan, strategies
from ...kernels.arrays import Matrix
from ...kernels.cpu.blas import backends
from ...kernels.planning.planner import plan_candidate
from ..products import Sizes, gflops
from .contest import Call, Contest, Truth, within
from .table import LIMITS

CHECKED = 192
"""Rows of C that are compared with float64."""


def operands(sizes: Sizes, dtype: str, seed: int) -> tuple[Matrix, Matrix, Matrix]:
    """Standard normal A and B, and an empty C."""
    rng, (m, k, n), kind = np.random.default_rng(seed), sizes, np.dtype(dtype).type
    return rng.standard_normal((m, k), kind), rng.standard_normal((k, n), kind), np.empty((m, n), kind)


def libraries(a: Matrix, b: Matrix, out: Matrix | None = None) -> dict[str, Call]:
    """The products to beat: one for every installed library that supports the dtype, into a C of its own, or `out`."""
    dtype = a.dtype.name
    calls: dict[str, Call] = {}
    for backend in backends():
        if backend.supports(dtype):
            c = np.empty((len(a), b.shape[1]), a.dtype) if out is None else out

            def call(backend: Any = backend, c: Matrix = c) -> Matrix:
                backend.multiply(a, b, c, dtype)
                return c

            calls[backend.name] = call
    return calls


def compete(a: Matrix, b: Matrix, base: Mapping[str, Call], ours: Mapping[str, Call], rounds: int) -> dict[str, Any]:
    """Figures of all: Gflop/s, error, and for ours the ratio to the best library."""
    (m, k), n = a.shape, b.shape[1]
    judge = within(Truth(a, b, CHECKED).error, LIMITS["product of a library"][a.dtype.name])
    timings = Contest({**base, **ours}, rounds, judge=judge).run()
    library = timings.fastest(base)
    first = timings.against(library, next(iter(ours), library.name))
    return {
        "gflops": {name: gflops(m, k, n, seconds) for name, seconds in timings.medians.items()},
        "quartiles_s": timings.quartiles_s,
        "error": timings.errors,
        "best_library": library.name,
        "ratios": timings.ratios(library, ours),
        "ratio": first["ratio"],
        "interval": first["interval"],
    }


def proposed_plans(decision: Decision, wanted: Callable[[Candidate], bool]) -> Iterator[Plan]:
    """The plans of the proposed candidates that are wanted and can run, least predicted first."""
    known = strategies(decision.request.device)
    for candidate in (proposal.candidate for proposal in decision.proposals):
        if wanted(candidate):
            strategy = known[candidate.family, candidate.strategy]
            plan = plan_candidate(strategy, candidate, decision.request, decision.machine)
            if isinstance(plan, Plan):
                yield plan
