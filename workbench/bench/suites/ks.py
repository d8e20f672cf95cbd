"""Suite "ks": products by single Kronecker-sparse factors, batch-first and batch-last, against the usual baselines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....errors import PlanError
from ...contenders import Contender, contest_of
from ...schemes import AUTO
from ..case import Bar, Case, Figures, Options, Say, Suite
from ..ks_figures import draw_figures
from ..ks_patterns import BATCH, energy_patterns, paper_patterns, sample
from ..ks_permutations import permutation_share
from ..ks_tables import HOPELESS, Rows, products, tables, write_tables
from ..picture import ratios

if TYPE_CHECKING:
    from ....kernels.kronecker import Pattern

CSR_RATES, BSR_RATE, CPU_SPARSE_RATE = {"bsf": 5e11, "bsl": 4.5e12}, 5e12, 2.5e10
"""Operations a second that torch's product of a CSR matrix reached at most on an H200, by layout (34 rows of this
suite), of a BSR matrix with d = 1 (10 rows, at most 4.5e12); and those of CSR and BSR on two cores (17 rows: 19 and 23
Gflop/s)."""

CPU_BATCH, CPU_SIDES, CPU_SAMPLE = 4096, (1024, 8192), 24

CUDA_SAMPLE, GRADIENT_SAMPLE = 120, 40

NEVER_BELOW, GRADIENT_BAR = 0.99, 1.3


def _cases(options: Options) -> Iterator[Case]:
    from ....kernels.factored import ORDERS

    if options.energy:
        yield from _energy_cases(options)
        return
    if options.gradients:
        yield from _gradient_cases(options)
        return
    on_cpu = options.device == "cpu"
    low, high = CPU_SIDES
    known = paper_patterns()
    if on_cpu:
        known = tuple(one for one in known if low <= min(one.rows, one.cols) and max(one.rows, one.cols) <= high)
    batch = CPU_BATCH if on_cpu else BATCH
    count = options.sample or (CPU_SAMPLE if on_cpu else CUDA_SAMPLE)
    for dtype in options.dtypes or ("float32",):
        for pattern in sample(known, count, options.seed):
            for order in ORDERS:
                run = partial(_timed, pattern.sizes, batch, dtype, order, options)
                seconds = 3 + 60 * batch * pattern.nonzeros / 1e11 if on_cpu else 4.0
                bars = (Bar("ratio", NEVER_BELOW),) if on_cpu and dtype == "float32" else ()
                ahead = None if on_cpu else partial(_timed_ahead, pattern.sizes, batch, dtype, order)
                yield Case(f"{order} {dtype} {pattern}", run, seconds, bars, ahead)


def _energy_cases(options: Options) -> Iterator[Case]:
    from ....kernels.factored import ORDERS

    if options.device != "cuda":
        raise PlanError("energy is read from a GPU; give --device cuda")
    for dtype in options.dtypes or ("float32",):
        for pattern in sample(energy_patterns(), options.sample or CUDA_SAMPLE, options.seed):
            for order in ORDERS:
                run = partial(_energy, pattern.sizes, dtype, order, options)
                yield Case(f"energy {order} {dtype} {pattern}", run, 9.0)


def _gradient_cases(options: Options) -> Iterator[Case]:
    from ....kernels.factored import ORDERS

    if options.device != "cuda":
        raise PlanError("gradients are timed by a GPU's own events; give --device cuda")
    for dtype in options.dtypes or ("float32",):
        for pattern in sample(paper_patterns(), options.sample or GRADIENT_SAMPLE, options.seed):
            for order in ORDERS:
                run = partial(_gradients, pattern.sizes, dtype, order, options)
                bars = (Bar("ratio", GRADIENT_BAR),) if dtype == "float32" else ()
                yield Case(f"gradients {order} {dtype} {pattern}", run, 3.0, bars)


def _gradients(sizes: tuple[int, int, int, int], dtype: str, order: str, options: Options, say: Say) -> Figures:
    """Both gradients of one product over those that autograd derives from a permuted batched GEMM."""
    from ....kernels.kronecker import Pattern
    from ..ks_gradients import gradient_figures

    return gradient_figures(Pattern(*sizes), BATCH, dtype, order, options.rounds or 5, options.seed, say)


def _energy(sizes: tuple[int, int, int, int], dtype: str, order: str, options: Options, say: Say) -> Figures:
    """Joules of the planner's choice and of the paper's baselines."""
    from ....kernels.factored import request_of
    from ....kernels.kronecker import KroneckerSparse, Pattern
    from ..ks_energy import energy_figures, joules_of

    pattern = Pattern(*sizes)
    request = request_of(KroneckerSparse.of(pattern), BATCH, dtype, order, device="cuda")
    return {**energy_figures(joules_of(request, options.seed, say)), "proxy": pattern.d * pattern.h}


def _timed(sizes: tuple[int, int, int, int], batch: int, dtype: str, order: str, options: Options, say: Say) -> Figures:
    """The planner's choice against the baselines that can run, the dense matrix made before."""
    from ....kernels import plan_for
    from ....kernels.factored import request_of
    from ....kernels.kronecker import KroneckerSparse, Pattern
    from ....kernels.structured.strategy import STRIDED

    pattern = Pattern(*sizes)
    request = request_of(KroneckerSparse.of(pattern), batch, dtype, order, device=options.device)
    contest = contest_of(request, AUTO, (1,), None, options.seed)
    strided = plan_for(request, strategy=STRIDED).seconds
    some = worth_timing(contest.contenders, pattern, order, strided)
    found = replace(contest, contenders=some).run(options.rounds or 7, say)
    say("timing the permutations of bmm")
    share = permutation_share(request, pattern)
    mine = found.rows[-1]
    best = min((row for row in found.rows if row.is_baseline), key=lambda row: row.median_s)
    permuted = next(row for row in found.rows if row.what == "bmm")
    return {
        "chosen": mine.plan,
        "baseline": best.what,
        "ratio": mine.ratio,
        "interval": mine.interval,
        "ratio_to_bmm": permuted.median_s / mine.median_s,
        "density": pattern.density,
        "h": pattern.h,
        "size": pattern.rows * pattern.cols,
        "permutations": share,
        "ms": {row.what: 1e3 * row.median_s for row in found.rows},
        "ratios": {row.what: best.median_s / row.median_s for row in found.rows},
        "predicted_ms": None if mine.predicted_s is None else 1e3 * mine.predicted_s,
        "error": mine.relative_error,
        "basis": found.basis,
    }


def worth_timing(
    contenders: tuple[Contender, ...], pattern: Pattern, order: str, strided: float | None = None
) -> tuple[Contender, ...]:
    """Without baselines that can't be the best, where each would take longer than all others.

    On a GPU those are the dense matrix and CSR where they must take HOPELESS times as long as the choice, and BSR where
    d > 1 or where it must take longer than is predicted for GEMMs on views (`strided` seconds), which are those of bmm
    where d = 1: torch compiles its kernel for ten seconds a row. With d > 1 it took 1.1 to 28 times as long as bmm on
    all 14 rows where both were timed, with d = 1 2.3 to 52 times on 10 rows (H200). On a processor those are the sparse
    formats: one product took up to 15 s.
    """
    mine = contenders[-1].plan
    device, operations = mine.request.device, 2.0 * pattern.nonzeros * mine.request.n
    if mine.seconds is None:
        return contenders
    longest = HOPELESS[device] * mine.seconds
    if device == "cuda":
        is_slow = pattern.d > 1 or operations / BSR_RATE > (strided or math.inf)
        least = {"csr": operations / CSR_RATES[order], "bsr": math.inf if is_slow else 0.0}
    else:
        least = dict.fromkeys(("csr", "bsr"), operations / CPU_SPARSE_RATE)

    def is_worth(one: Contender) -> bool:
        seconds = one.plan.seconds if one.what == "dense" and device == "cuda" else least.get(one.what)
        return seconds is None or seconds <= longest

    return tuple(one for one in contenders if is_worth(one))


def _timed_ahead(sizes: tuple[int, int, int, int], batch: int, dtype: str, order: str) -> None:
    """The planner's choice on operands without data; the baselines are torch's own."""
    from ....kernels import decision_for
    from ....kernels.cuda.bench import CudaBench
    from ....kernels.factored import request_of
    from ....kernels.kronecker import KroneckerSparse, Pattern

    request = request_of(KroneckerSparse.of(Pattern(*sizes)), batch, dtype, order, device="cuda")
    a, b, out = CudaBench().operands(request, 0, blank=True)
    executor: Any = decision_for(request).plan.build()
    executor.run(a, b, out)


GRADIENTS, ENERGY = "gradients ", "energy "
"""What the keys of such rows begin with."""


def _written(rows: Rows, path: Path) -> None:
    """Draw the rows and the paper's figures, and write its tables beside them; of gradients and energy a table each."""
    from ..ks_energy import write_energy
    from ..ks_gradients import write_gradients

    if some := _named(rows, GRADIENTS):
        write_gradients(some, path.with_name(f"{path.stem}-gradients.md"))
    if some := _named(rows, ENERGY):
        write_energy(some, path.with_name(f"{path.stem}-energy.md"))
    if some := products(rows):
        ratios(some, path)
        write_tables(some, path.with_name(f"{path.stem}-tables.md"))
        draw_figures(some, path.with_name(f"{path.stem}-figures.svg"))


def _report(rows: Rows) -> Iterator[str]:
    """The paper's tables, and those of gradients and energy, of all rows."""
    from ..ks_energy import energy_lines
    from ..ks_gradients import gradient_lines

    yield from tables(rows)
    for begins, lines in ((GRADIENTS, gradient_lines), (ENERGY, energy_lines)):
        if some := _named(rows, begins):
            yield from lines(some)
            yield ""


def _named(rows: Rows, begins: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["key"].startswith(begins)]


SUITE = Suite(
    "ks",
    "Kronecker-sparse products against permuted batched GEMM, einsum, sparse formats and the dense matrix",
    _cases,
    ("chosen", "baseline", "ratio", "interval", "ratio_to_bmm", "density", "h"),
    (
        "kernels",
        "workbench/bench/baselines",
        "workbench/bench/ks_patterns.py",
        "workbench/bench/ks_permutations.py",
        "workbench/bench/ks_energy.py",
        "workbench/bench/ks_gradients.py",
        "workbench/contenders.py",
    ),
    _written,
    {
        "energy": ("readable", "energy_over_bmm", "energy_over_best", "joules", "proxy"),
        "gradients": ("ratio", "ms", "differences"),
    },
    report=_report,
)
