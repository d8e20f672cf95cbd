"""Suite "causal": triangular products and causal attention against strips of GEMM, full + tril and fused attention."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ....errors import PlanError
from ....kernels import Request, decision_for, machine_for, plan_for, tune
from ....kernels.arrays import torch
from ....kernels.causal.candidates import scheme_names
from ....kernels.causal.cuda import TWO_LEVELS
from ....kernels.causal.naive import plain
from ....kernels.cpu.executor import MatrixExecutor
from ....kernels.cpu.triangular_products import HalfProduct, zero_outside_triangle
from ....kernels.cuda.bench import CudaBench
from ....kernels.cuda.dtypes import precision_of
from ....kernels.cuda.machine import require_device
from ....kernels.cuda.requests import request_of
from ....kernels.cuda.triangular_products import strips
from ....kernels.plans.tuning import bench_for
from ....kernels.products.triangular import STRATEGIES, run_triangular
from ....kernels.request import structures_of
from ....kernels.triangular import causal_pv, causal_qk, syrk, trmm
from ....schemes_db.resolve import resolve
from ....schemes_db.straightline import program_of
from ....schemes_db.symmetry import ATTENTION_PRODUCTS, Triangle
from ...products import Device, sized_request
from ..baselines import NAMES, baseline
from ..baselines.causal import halving
from ..case import Case, Figures, Options, Say, barred
from ..contest import Call, Contest, Timings, clock_of, poisoned, relative, require_right, within
from ..cpu_products import proposed_plans
from ..table import LIMITS

BASELINES = ("full + tril", "8 strips", "16 strips")
"""The baseline of a ratio on a processor: the fastest of these in the same rounds."""

PLAIN = (*BASELINES, "halving")
"""The baselines on a GPU: the vendor's product of the whole, of strips, and of halves."""

PRODUCTS = {"QK": "QK, dP", "PV": "PV, dQ", "dV": "dV, dK"}
"""The products that differ, and which of the six are of the same form and layout."""

SIZES = ((4096, 1024), (4096, 2048), (4096, 4096), (8192, 1024), (8192, 2048), (8192, 4096))
"""(L, d)"""

CUDA_SIZES = ((4096, 4096), (8192, 4096), (8192, 8192))

ERROR_SEEDS = 10
"""Seeds of which the largest error counts."""

SPENT = 0.05
"""Seconds that a contender runs in a round on a GPU."""

GATED = ("float32", "float64", "bfloat16", "float16")

SHAPES = ((4, 2, 333, 333, 65), (2, 1, 257, 129, 1), (1, 1, 1024, 1024, 512), (2, 1, 4096, 4096, 256))
"""Heads, heads that share, rows, columns and width of what is checked; the last fills the programs that stay."""


@barred
def cases(options: Options) -> Iterator[Case]:
    """On a GPU the gate first; then the products by every strategy, their errors, and there attention."""
    on_cpu = options.device == "cpu"
    if not on_cpu:
        yield Case("gate", partial(gate, options.seed), ahead=gate_ahead)
    sizes, dtypes = (SIZES, ("float32",)) if on_cpu else (CUDA_SIZES, ("bfloat16", "float32", "float64"))
    for (length, width), dtype, product in itertools.product(sizes, options.dtypes or dtypes, PRODUCTS):
        of, name = (product, length, width, dtype), PRODUCTS[product] if on_cpu else product
        run, ahead = partial(_timed, *of, options), None if on_cpu else partial(_timed_ahead, *of)
        yield Case(f"{name} {dtype} L={length} d={width}", run, ahead=ahead)
    for (length, width), product in itertools.product(((1024, 512),) if on_cpu else CUDA_SIZES, PRODUCTS):
        key = f"error {PRODUCTS[product]} float32" if on_cpu else f"error {product} float32 L={length} d={width}"
        run = partial(_product_error, product, length, width, options)
        ahead = None if on_cpu else partial(_timed_ahead, product, length, width, "float32")
        yield Case(key, run, ahead=ahead)
    for length, width in () if on_cpu else ((4096, 128), (8192, 128), (4096, 2048)):
        run = partial(_attention, (1, 8 if width <= 256 else 1, length, width), options)
        yield Case(f"attention bfloat16 L={length} d={width}", run)


def _request(product: str, length: int, width: int, dtype: str, device: str) -> Request:
    sizes = (length, width, length) if product == "QK" else (length, length, width)
    return sized_request(sizes, dtype, Device(device), product)


def _operands(request: Request, seed: int) -> tuple[Any, Any, Any]:
    """A, B and C of the device's bench; A has zeros outside its triangle."""
    a, b, out = bench_for(request).operands(request, seed)
    if request.device == "cpu" and request.triangle is not None and request.triangle.side == "left":
        zero_outside_triangle(a, request.triangle.upper)
    return a, b, out


def _whole(a: Any, b: Any, out: Any, triangle: Any) -> Any:
    """The vendor's product of the whole, what is above the triangle of the result set to zero."""
    if isinstance(out, np.ndarray):
        np.matmul(a, b, out=out)
        if triangle.side == "out":
            zero_outside_triangle(out, triangle.upper)
        return out
    torch.mm(a, b, out=out)
    return out.tril_() if triangle.side == "out" else out


def _timed(product: str, length: int, width: int, dtype: str, options: Options, say: Say) -> Figures:
    """All contenders in turn, on a processor after tuning: what the library would run was measured fastest before.

    On a GPU `ratio` is the choice over the better strips, `over_plain` over all baselines.
    """
    request, on_cpu = _request(product, length, width, dtype, options.device), options.device == "cpu"
    a, b, out = _operands(request, options.seed)
    if on_cpu:
        say("tuning")
        tune(request, rounds=3, seed=options.seed, on_event=say)
    plan = plan_for(request)
    contenders = (_cpu_contenders if on_cpu else _cuda_contenders)(request, a, b, out)
    contenders["chosen"] = partial(plan.build().run, a, b, out)
    limit = 200 * float(np.finfo(dtype).eps) if on_cpu else LIMITS["causal product at the gate"][dtype]
    judge = poisoned(out, within(bench_for(request).errors(request, a, b), limit, "relative error"))
    timings = Contest(contenders, options.rounds or 7, clock_of(options.device, SPENT), say, judge).run()
    best = timings.fastest(BASELINES)
    found = {**timings.against(best, "chosen"), "ratios": timings.ratios(best)} if on_cpu else _over_each(timings)
    return {"chosen": str(plan.candidate), **found}


def _over_each(timings: Timings) -> dict[str, Any]:
    others, ours = [name for name in timings if name != "chosen"], timings["chosen"].median
    kernel = timings["full + tril"].median / timings["kernel"].median if "kernel" in timings else None
    return {
        "ms": timings.ms,
        "ratio": timings.fastest(BASELINES[1:]).median / ours,
        "over_plain": timings.fastest(PLAIN).median / ours,
        "over_halving": timings["halving:strassen"].median / ours,
        "kernel_over_full": kernel,
        "fastest": timings.fastest(others).name,
        "baseline": "strips",
        "ratio_of_errors": {name: error / timings.errors["full + tril"] for name, error in timings.errors.items()},
    }


def _cpu_contenders(request: Request, a: Any, b: Any, out: Any) -> dict[str, Call]:
    """Every candidate of the planner but the vendor's product, halving, strips and the whole."""
    decision = decision_for(request, machine=replace(machine_for(request), wisdom=None))
    found: dict[str, Call] = {
        plan.candidate.label: partial(plan.build().run, a, b, out)
        for plan in proposed_plans(decision, lambda candidate: candidate.strategy != "vendor")
    }
    for name in NAMES["causal"]:
        found[name] = partial(baseline(request, name).run, a, b, out)
    assert request.triangle is not None
    for count in (8, 16):
        strips = MatrixExecutor(request, HalfProduct(request.triangle, request.shape, request.dtype, count))
        found[f"{count} strips"] = partial(strips.run, a, b, out)
    return found | {"full + tril": partial(_whole, a, b, out, request.triangle)}


def _cuda_contenders(request: Request, a: Any, b: Any, out: Any) -> dict[str, Call]:
    """The baselines, halving by Strassen's scheme, every scheme whose grid divides the sizes, the kernel."""
    triangle = request.its_triangle
    found: dict[str, Call] = {"full + tril": partial(_whole, a, b, out, triangle)}
    found |= {f"{count} strips": partial(strips, a, b, out, triangle, count) for count in (8, 16)}
    found["halving"] = partial(halving, a, b, out, triangle)
    found["halving:strassen"] = partial(halving, a, b, out, triangle, program_of(resolve("strassen")[0]))
    for name in schemes():
        try:
            found[name] = partial(plan_for(request, name, strategy="scheme").build().run, a, b, out)
        except PlanError:  # its grid does not divide the sizes
            continue
    if a.element_size() == 2:
        found["kernel"] = partial(plan_for(request, strategy="kernel").build().run, a, b, out)
    return found


def _timed_ahead(product: str, length: int, width: int, dtype: str) -> None:
    """All contenders of a GPU on operands without data."""
    require_device()
    torch.backends.cuda.matmul.allow_tf32 = False
    request = _request(product, length, width, dtype, "cuda")
    for run in _cuda_contenders(request, *CudaBench().operands(request, 0, blank=True)).values():
        run()


def _product_error(product: str, length: int, width: int, options: Options, say: Say) -> Figures:
    """The largest errors over ten seeds, of the standard product in float32 and of what a call takes by itself."""
    request = _request(product, length, width, "float32", options.device)
    plan = plan_for(request)
    runs: dict[str, Any] = {"standard": partial(plain, triangle=ATTENTION_PRODUCTS[product]), "ours": plan.build().run}
    worst = dict.fromkeys(runs, 0.0)
    for seed in range(options.seed, options.seed + ERROR_SEEDS):
        a, b, _ = _operands(request, seed)
        error_of = bench_for(request).errors(request, a, b)
        for name, run in runs.items():
            worst[name] = max(worst[name], error_of(run(a, b)))
        say(f"seed {seed}")
    ratio = worst["ours"] / worst["standard"]
    return {"errors": worst, "ratio_of_errors": ratio, "seeds": ERROR_SEEDS, "chosen": str(plan.candidate)}


def _attention(shape: tuple[int, int, int, int], options: Options, say: Say) -> Figures:
    """Heads of (batch, heads, L, d) in bfloat16 by materialised products and by torch's fused attention."""
    from ....kernels.torch.attention import causal_attention

    require_device()
    generator = torch.Generator("cuda").manual_seed(options.seed)
    q, k, v = torch.randn(3, *shape, generator=generator, device="cuda", dtype=torch.bfloat16)
    calls = {by: partial(causal_attention, q, k, v, strategy=by) for by in ("products", "sdpa")}
    timings = Contest(calls, options.rounds or 7, clock_of("cuda", SPENT), say).run()
    return {"chosen": timings.fastest(calls).name, **timings.against(timings["sdpa"], "products")}


def schemes() -> tuple[str, ...]:
    """The schemes for triangular products that are shipped, and two levels of one."""
    return (*scheme_names(), TWO_LEVELS)


def _gated_by(rows: int) -> tuple[str | None, ...]:
    """The planner's choice, and strategies and schemes by name."""
    return (None, "kernel", "strips", *(schemes() if rows % 4 == 0 else ()))


def gate_ahead() -> None:
    """The products of heads that `gate` checks, on tensors without data."""
    require_device()
    for dtype in GATED:
        blank = partial(torch.empty, device="meta", dtype=getattr(torch, dtype))
        for heads, shared, rows, cols, width in SHAPES:
            size, each = min(rows, cols), heads // shared  # below the square there are plain products
            q, k = blank(2, shared, each, size, width), blank(2, shared, 1, size, width)
            weights = blank(2, shared, each, size, size)
            for by in _gated_by(rows):
                for a, b, triangle in ((q, k.mT, Triangle("out")), (weights, k, Triangle("left"))):
                    request = request_of(a, b, precision_of(a), structures=structures_of(triangle))
                    run_triangular(request, a, b, by)


def gate(seed: int, say: Say) -> Figures:
    """The largest error of each dtype."""
    require_device()
    torch.manual_seed(seed)
    torch.backends.cuda.matmul.allow_tf32 = False
    draw, worst = partial(torch.randn, device="cuda"), dict.fromkeys(GATED, 0.0)

    def check(name: str, dtype: str, got: Any, wanted: Any) -> None:
        error = require_right(f"{name} {dtype}", relative(got, wanted), LIMITS["causal product at the gate"][dtype])
        worst[dtype] = max(worst[dtype], error)

    for dtype in GATED:
        kind = getattr(torch, dtype)
        for heads, shared, rows, cols, width in SHAPES:
            q, k = draw(2, heads, rows, width).to(kind), draw(2, shared, cols, width).to(kind)
            wide = k.double().repeat_interleave(heads // shared, 1)
            seen = torch.ones(rows, cols, device="cuda").tril().bool()
            weights = torch.where(seen, draw(2, heads, rows, cols), float("nan")).to(kind)
            clean = torch.where(seen, weights, 0).double()
            for by in _gated_by(rows):
                named: Any = {"strategy" if by in STRATEGIES else "scheme": by}
                what = f"{by} {rows}x{cols}x{width}"
                check(what, dtype, causal_qk(q, k, **named), (q.double() @ wide.mT).tril())
                check(what, dtype, causal_pv(weights, k, **named), clean @ wide)
        square, other = draw(300, 300).to(kind), draw(300, 70).to(kind)
        check("trmm", dtype, trmm(square, other, lower=False), square.double().triu() @ other.double())
        check("trmm", dtype, trmm(square, other.mT, side="right"), other.double().mT @ square.double().tril())
        check("syrk", dtype, syrk(other), (other.double() @ other.double().mT).tril())
        say(dtype)
    return {"worst_errors": worst}
