"""Suite "ks": products by single Kronecker-sparse factors, batch-first and batch-last, against the usual baselines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from ....errors import PlanError
from ....kernels import Request, decision_for, plan_for
from ....kernels.cuda.bench import CudaBench
from ....kernels.factored import BATCH_LAST, ORDERS, factored_request
from ....kernels.kronecker import KroneckerSparse, Pattern
from ....kernels.plans.tuning import bench_for
from ....kernels.structured.strategy import STRIDED
from ...contenders import Contender, contest_of
from ...schemes import AUTO
from ..baselines import baseline
from ..case import Case, Figures, Options, Say, barred
from ..contest import Contest, clock_of
from ..ks_measures import energy_figures, energy_lines, gradient_figures, gradient_lines, joules_of
from ..ks_patterns import BATCH, energy_patterns, paper_patterns, sample
from ..ks_tables import HOPELESS, Rows, products, tables

CSR_RATES, BSR_RATE, CPU_SPARSE_RATE = {"bsf": 5e11, "bsl": 4.5e12}, 5e12, 2.5e10
"""Operations a second that torch's product of a CSR matrix reached at most on an H200, by layout (34 rows of this
suite), of a BSR matrix with d = 1 (10 rows, at most 4.5e12); and those of CSR and BSR on two cores (17 rows: 19 and 23
Gflop/s)."""

CPU_BATCH, CPU_SIDES, CPU_SAMPLE = 4096, (1024, 8192), 24

CUDA_SAMPLE, GRADIENT_SAMPLE = 120, 40

PERMUTATION_ROUNDS = 5

MEASURED = {"energy": "energy is read from a GPU", "gradients": "gradients are timed by a GPU's own events"}


@barred
def cases(options: Options) -> Iterator[Case]:
    on_cpu, low, high = options.device == "cpu", *CPU_SIDES
    known, count = paper_patterns(), options.sample or (CPU_SAMPLE if on_cpu else CUDA_SAMPLE)
    if options.measure and on_cpu:
        raise PlanError(f"{MEASURED[options.measure]}; give --device cuda")
    if options.measure == "energy":
        known = energy_patterns()
    elif options.measure == "gradients":
        count = options.sample or GRADIENT_SAMPLE
    elif on_cpu:
        known = tuple(one for one in known if low <= min(one.rows, one.cols) and max(one.rows, one.cols) <= high)
    for dtype, pattern in product(options.dtypes or ("float32",), sample(known, count, options.seed)):
        for order in ORDERS:
            yield _case(pattern, dtype, order, options)


def _case(pattern: Pattern, dtype: str, order: str, options: Options) -> Case:
    on_cpu, key, of = options.device == "cpu", f"{order} {dtype} {pattern}", (pattern, dtype, order)
    if options.measure == "energy":
        return Case(f"energy {key}", partial(_energy, *of, options))
    if options.measure == "gradients":
        return Case(f"gradients {key}", partial(gradient_figures, *of, options))
    return Case(key, partial(_timed, *of, options), ahead=None if on_cpu else partial(_timed_ahead, *of))


def _energy(pattern: Pattern, dtype: str, order: str, options: Options, say: Say) -> Figures:
    """Joules of the planner's choice and of the paper's baselines."""
    request = factored_request(KroneckerSparse.of(pattern), BATCH, dtype, order, device="cuda")
    return {**energy_figures(joules_of(request, options.seed, say)), "proxy": pattern.d * pattern.h}


def _timed(pattern: Pattern, dtype: str, order: str, options: Options, say: Say) -> Figures:
    """The planner's choice against the baselines that can run, the dense matrix made before."""
    batch = CPU_BATCH if options.device == "cpu" else BATCH
    request = factored_request(KroneckerSparse.of(pattern), batch, dtype, order, device=options.device)
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


def permutation_share(request: Request, pattern: Pattern) -> float:
    """1 - t / T for the times T of `bmm` by (a, b, c, d) and t by (a d, b, c, 1), which permutes nothing batch-last.

    Both in turns. Source: the protocol of appendix E.3 of Gonon, Zheng, Carrivain, Le (ICML 2025).
    """
    a, b, c, d = pattern.sizes
    gathered = KroneckerSparse.of(Pattern(a * d, b, c, 1))
    plain = factored_request(gathered, request.n, request.arithmetic, BATCH_LAST, device=request.device)
    bench, calls = bench_for(request), {}
    for name, one in (("whole", replace(request, max_extra_bytes=0)), ("multiplied", plain)):
        operands = bench.operands(one, 0)
        executor = baseline(one, "bmm")
        calls[name] = lambda executor=executor, operands=operands: executor.run(*operands)
    times = Contest(calls, PERMUTATION_ROUNDS, clock_of(request.device)).run().medians
    return 1 - times["multiplied"] / times["whole"]


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


def _timed_ahead(pattern: Pattern, dtype: str, order: str) -> None:
    """The planner's choice on operands without data; the baselines are torch's own."""
    request = factored_request(KroneckerSparse.of(pattern), BATCH, dtype, order, device="cuda")
    a, b, out = CudaBench().operands(request, 0, blank=True)
    executor: Any = decision_for(request).plan.build()
    executor.run(a, b, out)


def report(rows: Rows) -> Iterator[str]:
    """The paper's tables of products, and those of gradients and of energy, if there are rows of them."""
    if some := products(rows):
        yield from tables(some)
    for name, lines in (("gradients", gradient_lines), ("energy", energy_lines)):
        if others := [row for row in rows if row["key"].startswith(f"{name} ")]:
            yield from (*lines(others), "")
