"""The part of a permuted batched GEMM's time that its two permutations take."""

from __future__ import annotations

from dataclasses import replace

from ...kernels import Request
from ...kernels.factored import BATCH_LAST, factored_request
from ...kernels.kronecker import KroneckerSparse, Pattern
from ...kernels.plans.tuning import bench_for
from .baselines import baseline
from .contest import Contest, clock_of

ROUNDS = 5


def permutation_share(request: Request, pattern: Pattern) -> float:
    """1 - t / T for the times T of `bmm` by (a, b, c, d) and t by (a d, b, c, 1), which permutes nothing batch-last.

    Both in turns. Source: the protocol of appendix E.3 of Gonon, Zheng, Carrivain, Le (ICML 2025).
    """
    a, b, c, d = pattern.sizes
    gathered = KroneckerSparse.of(Pattern(a * d, b, c, 1))
    plain = factored_request(
        gathered, request.n, request.dtype, BATCH_LAST, device=request.device, precision=request.precision
    )
    bench, calls = bench_for(request), {}
    for name, one in (("whole", replace(request, max_extra_bytes=0)), ("multiplied", plain)):
        operands = bench.operands(one, 0)
        executor = baseline(one, "bmm")
        calls[name] = lambda executor=executor, operands=operands: executor.run(*operands)
    times = Contest(calls, ROUNDS, clock_of(request.device)).run().medians
    return 1 - times["multiplied"] / times["whole"]
