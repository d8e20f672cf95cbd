"""Suite "causal": triangular products and causal attention against strips of GEMM, full + tril and fused attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ....errors import PlanError
from ....kernels import Request, decision_for, executor_for, machine_for, plan_for, tune
from ....kernels.causal.candidates import scheme_names, scheme_program, stable_scheme_names
from ....kernels.causal.naive import by_program, plain
from ....kernels.cpu.executor import MatrixExecutor
from ....kernels.cpu.strips import zero_outside_triangle
from ....kernels.cpu.triangular_products import HalfProduct
from ....kernels.cuda.bench import CudaBench
from ....kernels.cuda.machine import require_device
from ....kernels.cuda.strips import strips
from ....kernels.plans.tuning import bench_for
from ....schemes_db.resolve import resolve
from ....schemes_db.straightline import program_of
from ....schemes_db.symmetry import ATTENTION_PRODUCTS
from ...products import Device, sized_request
from ..baselines import NAMES, baseline
from ..baselines.causal import halving
from ..case import Bar, Case, Figures, Options, Say, Suite, code_of
from ..causal_gate import LIMITS, gate, gate_ahead, schemes
from ..contest import Call, Contest, Timings, clock_of, poisoned, relative, within
from ..cpu_products import proposed_plans

BASELINES = ("full + tril", "8 strips", "16 strips")
"""The baseline of a ratio on a processor: the fastest of these in the same rounds."""

PLAIN = (*BASELINES, "halving")
"""The baselines on a GPU: the vendor's product of the whole, of strips, and of halves."""

PRODUCTS = {"QK": "QK, dP", "PV": "PV, dQ", "dV": "dV, dK"}
"""The products that differ, and which of the six are of the same form and layout."""

SIZES = ((4096, 1024), (4096, 2048), (4096, 4096), (8192, 1024), (8192, 2048), (8192, 4096))
"""(L, d)"""

CUDA_SIZES = ((4096, 4096), (8192, 4096), (8192, 8192))

WIDE = 2048
"""From this d on a product must gain; below it must not lose."""

GAIN, EVEN = 1.08, 0.99

CUDA_BARS = {
    ("QK", "float32"): (Bar("ratio", 1.15), Bar("over_halving", 1.03)),
    ("QK", "float64"): (Bar("ratio", 1.10),),
}
"""On a GPU a scheme must gain from L = 8192 on."""

KERNEL_BAR = Bar("kernel_over_full", 1.68)
"""The bar of the triangle-skipping kernel, bfloat16, L = d = 8192."""

ERROR_SEEDS = 10
PRODUCT_ERROR, ATTENTION_ERROR = 3.0, 2.0
"""Most times the standard algorithm's error, in the same dtype."""

TABLE_SIZE = (4096, 128)
"""(L, d) of ECA's tables 3 and 4."""

SPENT = 0.05
"""Seconds that a contender runs in a round on a GPU."""


def _cases(options: Options) -> Iterator[Case]:
    errors = Bar("ratio_of_errors", PRODUCT_ERROR, at_most=True)
    if options.device == "cuda":
        yield from _cuda_cases(options, errors)
        return
    for dtype in options.dtypes or ("float32",):
        for length, width in SIZES:
            for product in PRODUCTS:
                bars = (Bar("ratio", GAIN if width >= WIDE else EVEN),) if dtype == "float32" else ()
                seconds = 8 + 120 * length**2 * width / 3e11  # for nine contenders and as many rounds
                run = partial(_timed, product, length, width, dtype, options)
                yield Case(f"{PRODUCTS[product]} {dtype} L={length} d={width}", run, seconds, bars)
    for product in PRODUCTS:
        run = partial(_product_error, product, 1024, 512, options)
        yield Case(f"error {PRODUCTS[product]} float32", run, 10, (errors,))
    bars = (Bar("ratio_of_errors", ATTENTION_ERROR, at_most=True),)
    yield Case("error attention float32", partial(_attention_error, 1024, 512), 15, bars)
    for product in ("QK", "PV"):
        for dtype in ("float32", "float16", "bfloat16"):
            yield Case(f"rounding {product} {dtype}", partial(rounding, product, dtype, options.seed), 8)
    for length, width in ((2048, 128), (2048, 1024), (4096, 2048)):
        for backward in (False, True):
            passes = "forward + backward" if backward else "forward"
            run = partial(_attention, (1, 1, length, width), "float32", backward, options)
            yield Case(f"attention {passes} float32 L={length} d={width}", run, 20)


def _cuda_cases(options: Options, errors: Bar) -> Iterator[Case]:
    """The gate, then the products by every strategy, their errors, and attention."""
    yield Case("gate", partial(gate, options.seed), 20, ahead=gate_ahead)
    for length, width in CUDA_SIZES:
        for dtype in options.dtypes or ("bfloat16", "float32", "float64"):
            for product in PRODUCTS:
                bars = CUDA_BARS.get((product, dtype), ()) if length > 4096 else ()
                if (product, dtype, length, width) == ("QK", "bfloat16", 8192, 8192):
                    bars = (KERNEL_BAR,)
                of = product, length, width, dtype
                run, ahead = partial(_timed, *of, options), partial(_timed_ahead, *of)
                yield Case(f"{product} {dtype} L={length} d={width}", run, 10, bars, ahead)
    for length, width in CUDA_SIZES:
        for product in PRODUCTS:
            run = partial(_product_error, product, length, width, options)
            ahead = partial(_timed_ahead, product, length, width, "float32")
            yield Case(f"error {product} float32 L={length} d={width}", run, 5, (errors,), ahead)
    for length, width in ((4096, 128), (8192, 128), (4096, 2048)):
        run = partial(_attention, (1, 8 if width <= 256 else 1, length, width), "bfloat16", False, options)
        yield Case(f"attention bfloat16 L={length} d={width}", run, 6)


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
        from ....kernels.cpu.strips import zero_outside_triangle

        np.matmul(a, b, out=out)
        if triangle.side == "out":
            zero_outside_triangle(out, triangle.upper)
        return out
    import torch

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
    limit = 200 * float(np.finfo(dtype).eps) if on_cpu else LIMITS[dtype]
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
    import torch

    require_device()
    torch.backends.cuda.matmul.allow_tf32 = False
    request = _request(product, length, width, dtype, "cuda")
    for run in _cuda_contenders(request, *CudaBench().operands(request, 0, blank=True)).values():
        run()


def _product_error(product: str, length: int, width: int, options: Options, say: Say) -> Figures:
    """The largest errors over ten seeds: of the standard product in float32, and of every scheme on a processor, or on
    a GPU of what a call takes by itself."""
    request = _request(product, length, width, "float32", options.device)
    chosen, runs = None, dict[str, Any]()
    if options.device == "cpu":
        runs |= {name: executor_for(request, name, strategy="scheme").run for name in scheme_names()}
    else:
        chosen = plan_for(request)
        runs["ours"] = chosen.build().run
    worst = dict.fromkeys(("standard", *runs), 0.0)
    for seed in range(options.seed, options.seed + ERROR_SEEDS):
        a, b, _ = _operands(request, seed)
        error_of = bench_for(request).errors(request, a, b)
        for name, run in {"standard": partial(plain, triangle=ATTENTION_PRODUCTS[product]), **runs}.items():
            worst[name] = max(worst[name], error_of(run(a, b)))
        say(f"seed {seed}")
    figures = _over_standard(worst, runs)
    return figures if chosen is None else {**figures, "chosen": str(chosen.candidate)}


def _over_standard(worst: dict[str, float], names: Any) -> dict[str, Any]:
    ratio = max(worst[name] for name in names) / worst["standard"]
    return {"errors": worst, "ratio_of_errors": ratio, "seeds": ERROR_SEEDS}


def _attention_error(length: int, width: int, say: Say) -> Figures:
    """The largest Frobenius error of the output of attention by every scheme, over ten seeds, against SDPA's."""
    import torch

    from ....kernels.torch.attention import causal_attention

    attention = torch.nn.functional.scaled_dot_product_attention
    worst: dict[str, float] = {}
    for seed in range(ERROR_SEEDS):
        generator = torch.Generator().manual_seed(seed)
        q, k, v = (torch.randn(1, 1, length, width, generator=generator) for _ in range(3))
        truth = attention(q.double(), k.double(), v.double(), is_causal=True)
        results = {"standard": _weights(q, k.mT, width) @ v}
        for name in scheme_names():
            results[name] = causal_attention(q, k, v, scheme=name)
        for name, result in results.items():
            worst[name] = max(worst.get(name, 0.0), relative(result, truth))
        say(f"seed {seed}")
    # The bar is for what is chosen without being named; the others' figures stand beside it.
    return _over_standard(worst, stable_scheme_names())


def rounding(product: str, dtype: str, seed: int, say: Say) -> Figures:
    """ECA's tables 3 and 4: errors of elements at L=4096, d=128, sums and products rounded to the dtype."""
    import torch

    length, width = TABLE_SIZE
    triangle = ATTENTION_PRODUCTS[product]
    generator = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(length, width, generator=generator, dtype=torch.float64) for _ in range(3))
    normal = torch.nn.functional.normalize
    a, b = normal(q, dim=-1), normal(k, dim=-1).mT
    if product == "PV":
        a, b = _weights(a, b, width), v
    a, b = (x.to(getattr(torch, dtype)) for x in (a, b))
    truth = plain(a.double(), b.double(), triangle)
    results = {"standard": plain(a, b, triangle)}
    for name in scheme_names():
        results[name] = by_program(scheme_program(resolve(name)[0], triangle), a, b)
        say(name)
    there = torch.ones_like(truth).bool()
    errors = {
        name: (x.double() - truth).abs()[there.tril() if product == "QK" else there] for name, x in results.items()
    }
    return {
        "max_error": {name: float(error.max()) for name, error in errors.items()},
        "mean_error": {name: float(error.mean()) for name, error in errors.items()},
    }


def _weights(q: Any, k_transposed: Any, width: int) -> Any:
    """The weights of attention: full product, mask, softmax."""
    import torch

    scores = q @ k_transposed / width**0.5
    future = torch.ones_like(scores).triu(1).bool()
    return scores.masked_fill(future, -torch.inf).softmax(-1)


def _attention(shape: tuple[int, int, int, int], dtype: str, backward: bool, options: Options, say: Say) -> Figures:
    """Heads of (batch, heads, L, d) by materialised products and by torch's fused attention."""
    import torch

    from ....kernels.torch.attention import causal_attention, pays

    Device(options.device).require()
    generator = torch.Generator(options.device).manual_seed(options.seed)
    draw = partial(torch.randn, *shape, generator=generator, device=options.device, dtype=getattr(torch, dtype))
    q, k, v = (draw(requires_grad=backward) for _ in range(3))
    ask = draw()

    def run(by: str) -> Any:
        out = causal_attention(q, k, v, strategy=by)
        return torch.autograd.grad(out, (q, k, v), ask) if backward else out

    calls = {by: partial(run, by) for by in ("products", "sdpa")}
    with torch.enable_grad():
        rounds = options.rounds or (5 if options.device == "cpu" else 7)
        timings = Contest(calls, rounds, clock_of(options.device, SPENT), say).run()
    on_cpu = "products" if pays(q, k, v) else "sdpa"
    chosen = on_cpu if options.device == "cpu" else timings.fastest(calls).name
    return {"chosen": chosen, **timings.against(timings["sdpa"], "products")}


SUITE = Suite(
    "causal",
    "triangular products and causal attention against strips of GEMM, full + tril and fused attention",
    _cases,
    ("chosen", "baseline", "ratio", "interval", "ratio_of_errors"),
    code_of("causal_gate", "cpu_products"),
)
