"""Plans for one product that compete on its own device: checked against the true product, then timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import PlanError
from ..kernels import Plan, Request, decision_for, plan_for
from ..kernels.arrays import Matrix
from ..kernels.bfloat16 import bfloat16_bits, float32_of
from ..kernels.causal.naive import plain
from ..kernels.cpu.bench import CpuLoadMonitor
from ..kernels.cpu.blas import library_for
from ..kernels.dense.packed import FP8_VENDOR
from ..kernels.factored import UNLIMITED
from ..kernels.plans.tuning import bench_for
from ..kernels.precision import FP8
from ..kernels.structure import BlockMask
from ..schemes_db import Scheme
from .bench.baselines import Baseline, kind_of, named_plan, prepared
from .bench.contest import Call, Contest, Timing, clock_of, paired_interval, ratio_to, relative, require_right
from .bench.machine import BUSY_SHARE
from .bench.table import LIMITS
from .gpu_nvml import GpuState
from .products import gflops, require_memory
from .schemes import AUTO, planned_scheme

BASELINES = {
    "dense": ("vendor",),
    "causal": ("vendor", "strips", "halving"),
    "exact": ("leaf",),
    "kronecker": ("bmm", "einsum", "bsr", "csr", "dense"),
    "block-low-rank": ("strided", "permuted", "dense"),
}
"""The strategies and other people's methods that ratios are taken to, by kind; the fastest of them counts. Of
Kronecker-sparse ones those that can run; the dense matrix is built before the timing starts. In fp8 the vendor's
product of the operands as they are, and `fp8-vendor` where it can run."""

OPTIONAL = ("bsr", "csr", "dense")
"""Baselines of Kronecker-sparse products that are left out where they cannot run after all: a library lacks the dtype,
or the matrix does not fit in memory."""

SPENT = 0.1
"""Seconds of a contender's turn on a GPU: long enough for the power limit to be felt."""


@dataclass(frozen=True)
class Row:
    """The figures of one contender. `interval` is the 95% interval of the ratio over paired rounds, None for the
    baseline itself; `relative_error` that of some rows against float64."""

    what: str
    plan: str
    strategy: str
    method: str
    is_baseline: bool
    median_s: float
    quartiles_s: tuple[float, float]
    effective_gflops: float
    ratio: float
    interval: tuple[float, float] | None
    predicted_s: float | None
    workspace: int
    relative_error: float


@dataclass(frozen=True)
class Result:
    """All rows, the baseline that ratios are to, and the state of the machine meanwhile."""

    rows: tuple[Row, ...]
    baseline: str
    basis: str
    gpu: GpuState | None
    busy_share: float

    @property
    def disturbed(self) -> bool:
        """True if other processes used the processors."""
        return self.busy_share > BUSY_SHARE


@dataclass(frozen=True)
class Contender:
    """A plan, or somebody else's method, with its name in the table."""

    what: str
    plan: Plan | Baseline
    scheme: Any
    is_baseline: bool


@dataclass(frozen=True)
class PlanContest:
    """The contenders for a request, the basis of the planner's own choice, and A where it is given (None: random)."""

    request: Request
    contenders: tuple[Contender, ...]
    basis: str
    seed: int
    operand: Any = None

    def run(self, rounds: int, say: Callable[[str], None] = lambda _: None) -> Result:
        """Check every contender, then time all of them in turns.

        Raises:
            VerificationError: one is wrong; nothing was timed.
            PlanError: there is too little memory.
        """
        calls, errors = self.prepared(say)
        monitor, clock = CpuLoadMonitor(), clock_of(self.request.device, SPENT)
        timings = Contest(calls, rounds, clock, say, monitored=self.request.device == "cuda").run()
        timed = [one for one in self.contenders if one.what in calls]
        base = timings.fastest(one.what for one in timed if one.is_baseline)
        figures = tuple(self._row(one, timings[one.what], base, errors[one.what]) for one in timed)
        return Result(figures, base.name, self.basis, timings.gpu, monitor.share())

    def prepared(self, say: Callable[[str], None]) -> tuple[dict[str, Call], dict[str, float]]:
        """The calls of those that can run, with the errors of their results; raises as `run`."""
        bench, calls, errors = bench_for(self.request), dict[str, Call](), dict[str, float]()
        require_memory(self.request)
        a, b, out = bench.operands(self.request, self.seed)
        a = a if self.operand is None else self.operand
        error_of = bench.errors(self.request, a, b)
        for one in self.contenders:
            say(f"compiling and checking {one.what}")
            try:
                judge = partial(self._error, error_of, one, a, b)
                calls[one.what], errors[one.what] = prepared(one.plan, self.request, a, b, out, judge)
            except PlanError as error:
                if one.what not in OPTIONAL:
                    raise
                say(f"{one.what} is left out: {error}")
        return calls, errors

    def _error(self, error_of: Callable[[Any], float], one: Contender, a: Any, b: Any, product: Any) -> float:
        request = self.request
        if request.is_dense and not one.is_baseline and structured_scheme(one.scheme) is not None:
            error = relative_error(request, product, true_product(request, one.scheme, a, b))
        else:
            error = error_of(product)
        return require_right(one.what, error, max_error(one.plan.request), "relative error")

    def _row(self, one: Contender, timing: Timing, base: Timing, error: float) -> Row:
        request, candidate = self.request, one.plan.candidate
        what = (one.what, _shown(one.plan), candidate.strategy, candidate.method, one.is_baseline)
        rate = request.items * gflops(*request.shape, timing.median)
        interval = None if timing is base else paired_interval(base, timing)
        times = (timing.median, timing.quartiles, rate, ratio_to(base, timing), interval)
        return Row(*what, *times, one.plan.seconds, one.plan.workspace, error)


def max_error(request: Request) -> float:
    """The largest relative error, in the Frobenius norm, of a correct product; 0 for integers."""
    return LIMITS["product"].get(request.arithmetic, 0.0)


def contest_of(
    request: Request, text: str, levels: Sequence[int], strategy: str | None, seed: int = 0, operand: Any = None
) -> PlanContest:
    """The baselines of a request, and the plan of "auto" or of a scheme at each number of levels.

    Raises:
        PlanError, CatalogError, VerificationError: nothing can run it, or there is no such scheme.
    """
    family = kind_of(request)
    found = [Contender(name, plan, AUTO, is_baseline=True) for name, plan in _baselines(request, family)]
    if request.is_empty:
        raise PlanError(f"{request} is empty: there is nothing to time")
    scheme = planned_scheme(text, family == "causal")
    basis = "named"
    if text == AUTO:
        decision = decision_for(request, strategy=strategy)
        basis = "measured" if decision.measured else "predicted"
        found.append(Contender(AUTO, decision.plan, AUTO, is_baseline=False))
    else:
        for count in levels:
            plan = plan_for(request, scheme, count, strategy=strategy)
            single = family != "causal" and not isinstance(scheme, list)
            label = f"{text}, {count} level{'s' if count > 1 else ''}" if single else text
            found.append(Contender(label, plan, scheme, is_baseline=False))
    return PlanContest(request, tuple(found), basis, seed, operand)


def _baselines(request: Request, family: str) -> Iterator[tuple[str, Plan | Baseline]]:
    plain = family in ("dense", "causal")
    request = request if plain else replace(request, max_extra_bytes=UNLIMITED)
    for name in (*BASELINES[family], *([FP8_VENDOR] if request.precision == FP8 else [])):
        # The dense matrix may not fit in memory, a format may be missing; torch's e4m3 is for some GPUs and sizes only.
        with nullcontext() if plain and name != FP8_VENDOR else suppress(PlanError):
            yield name, named_plan(request, name)


def _shown(plan: Plan | Baseline) -> str:
    """The candidate; of a processor's vendor strategy with the library that computes the product."""
    text = str(plan.candidate)
    request = plan.request
    if not isinstance(plan, Plan) or plan.candidate.strategy != "vendor" or request.device != "cpu":
        return text
    named = request.is_dense and request.dtype != "int8"
    return f"{text} ({library_for(request, plan.machine.profile).name})" if named else text


def true_product(request: Request, scheme: Any, a: Any, b: Any, wide: bool = True) -> Any:
    """The classical product of arrays, or of tensors of a GPU; integers in the dtype of C.

    `wide`: in float64 (complex128); else in the request's dtype, which is what a library computes. `scheme`
    is what the plan was made for: a scheme with a structured target computes that.
    """
    on_gpu = not isinstance(a, np.ndarray)
    target = structured_scheme(scheme) if request.is_dense else None
    if on_gpu and target is None:
        left, right = (x.double() if wide else x for x in (a, b))
        return left @ right if request.triangle is None else plain(left, right, request.triangle)
    if on_gpu:
        a, b = (x.double().cpu().numpy() for x in (a, b))
    left, right = (_wide(x, request) if wide else float32_of(x) if x.dtype == np.uint16 else x for x in (a, b))
    masks = () if target is None else (BlockMask.of(kinds.astype(np.int8)) for kinds in target.target.kind_arrays)
    of_a, of_b, of_c = masks or request.structures
    product = of_c.naive(of_a.naive(left) @ of_b.naive(right))
    if not wide and request.dtype == "bfloat16" and not on_gpu:
        product = float32_of(bfloat16_bits(product))
    return product


def relative_error(request: Request, product: Any, truth: Any) -> float:
    """||product - truth|| / ||truth|| in the Frobenius norm, of an array or a tensor of a GPU."""
    if isinstance(truth, np.ndarray):
        product = _wide(product if isinstance(product, np.ndarray) else product.double().cpu().numpy(), request)
    return relative(product, truth)


def structured_scheme(scheme: Any) -> Scheme | None:
    """The scheme, where it is one with absent or triangular blocks."""
    found = scheme
    while isinstance(found, tuple | list):  # (scheme, certificate), or such an entry a level
        found = found[0]
    return found if isinstance(found, Scheme) and not found.target.is_general else None


def _wide(matrix: Matrix, request: Request) -> Matrix:
    if request.exact:
        return matrix.astype(request.result)
    if request.dtype == "bfloat16" and matrix.dtype == np.uint16:
        return float32_of(matrix).astype(np.float64)
    return matrix.astype(np.complex128 if np.iscomplexobj(matrix) else np.float64)
