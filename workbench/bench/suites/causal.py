"""Suite "causal": triangular products and causal attention against strips of GEMM, full + tril and fused attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..case import Bar, Case, Figures, Options, Say, Suite, code_of
from ..contest import Contest, Timing, Timings, poisoned, within
from ..picture import ratios

if TYPE_CHECKING:
    from ....kernels import Request

BASELINES = ("full + tril", "8 strips", "16 strips")
"""The baseline of a ratio: the fastest of these in the same rounds."""

PRODUCTS = {"QK": "QK, dP", "PV": "PV, dQ", "dV": "dV, dK"}
"""The products that differ, and which of the six are of the same form and layout."""

SIZES = ((4096, 1024), (4096, 2048), (4096, 4096), (8192, 1024), (8192, 2048), (8192, 4096))
"""(L, d)"""

WIDE = 2048
"""From this d on a product must gain; below it must not lose."""

GAIN, EVEN = 1.08, 0.99

ERROR_SEEDS = 10
PRODUCT_ERROR, ATTENTION_ERROR = 3.0, 2.0
"""Most times the standard algorithm's error, in the same dtype."""

TABLE_SIZE = (4096, 128)
"""(L, d) of ECA's tables 3 and 4."""


@dataclass(frozen=True)
class Row:
    """A triangular product to be timed."""

    product: str
    length: int
    width: int
    dtype: str

    @property
    def key(self) -> str:
        return f"{PRODUCTS[self.product]} {self.dtype} L={self.length} d={self.width}"

    @property
    def seconds(self) -> float:
        """Roughly, for nine contenders and as many rounds."""
        return 8 + 120 * self.length**2 * self.width / 3e11


def _cases(options: Options) -> Iterator[Case]:
    if options.device == "cuda":
        from ..causal_cuda import cases

        yield from cases(options)
        return
    for dtype in options.dtypes or ("float32",):
        for length, width in SIZES:
            for product in PRODUCTS:
                row = Row(product, length, width, dtype)
                bars = (Bar("ratio", GAIN if width >= WIDE else EVEN),) if dtype == "float32" else ()
                yield Case(row.key, partial(_timed, row, options.rounds or 7, options.seed), row.seconds, bars)
    for product in PRODUCTS:
        bars = (Bar("ratio_of_errors", PRODUCT_ERROR, at_most=True),)
        yield Case(f"error {PRODUCTS[product]} float32", partial(_product_error, product, 1024, 512), 10, bars)
    bars = (Bar("ratio_of_errors", ATTENTION_ERROR, at_most=True),)
    yield Case("error attention float32", partial(_attention_error, 1024, 512), 15, bars)
    for product in ("QK", "PV"):
        for dtype in ("float32", "float16", "bfloat16"):
            yield Case(f"rounding {product} {dtype}", partial(rounding, product, dtype, options.seed), 8)
    for length, width in ((2048, 128), (2048, 1024), (4096, 2048)):
        for backward in (False, True):
            passes = "forward + backward" if backward else "forward"
            yield Case(
                f"attention {passes} float32 L={length} d={width}",
                partial(_attention, length, width, backward, options.rounds or 5, options.seed),
                20,
            )


def _operands(row: Row, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)

    def draw(*size: int) -> Any:
        return rng.standard_normal(size).astype(row.dtype)

    if row.product == "QK":
        return draw(row.length, row.width), draw(row.length, row.width).T
    weights = np.tril(draw(row.length, row.length))
    return (weights.T if row.product == "dV" else weights), draw(row.length, row.width)


def _request(a: Any, b: Any, triangle: Any, out: Any = None) -> Request:
    from ....kernels import Request
    from ....kernels.request import structures_of

    return Request.of(a, b, out, structures=structures_of(triangle))


def _timed(row: Row, rounds: int, seed: int, say: Say) -> Figures:
    """Every candidate in turn, after tuning: what the library would run is the one that was measured fastest before."""
    from ....kernels import Plan, decision_for, machine_for, plan_for, strategies, tune
    from ....kernels.causal.naive import plain
    from ....kernels.cpu.executor import MatrixExecutor
    from ....kernels.cpu.strips import zero_outside_triangle
    from ....kernels.cpu.triangular_products import HalfProduct
    from ....kernels.planning.planner import plan_candidate
    from ....schemes_db.symmetry import ATTENTION_PRODUCTS
    from ..baselines import NAMES, baseline

    triangle = ATTENTION_PRODUCTS[row.product]
    a, b = _operands(row, seed)
    out = np.zeros((row.length, b.shape[1]), row.dtype)
    request = _request(a, b, triangle, out)
    say("tuning")
    tune(request, rounds=3, seed=seed, on_event=say)
    plan = plan_for(request)
    contenders: dict[str, Any] = {}
    unwise = replace(machine_for(request), wisdom=None)
    for proposal in decision_for(request, machine=unwise).proposals:
        candidate = proposal.candidate
        found = plan_candidate(strategies("cpu")[candidate.family, candidate.strategy], candidate, request, unwise)
        if candidate.strategy != "vendor" and isinstance(found, Plan):
            contenders[candidate.label] = partial(found.build().run, a, b, out)
    for name in NAMES["causal"]:
        contenders[name] = partial(baseline(request, name).run, a, b, out)
    for count in (8, 16):
        strips = MatrixExecutor(request, HalfProduct(triangle, request.shape, row.dtype, count))
        contenders[f"{count} strips"] = partial(strips.run, a, b, out)

    def whole() -> None:
        np.matmul(a, b, out=out)
        if triangle.side == "out":
            zero_outside_triangle(out, triangle.upper)

    contenders["full + tril"] = whole
    contenders["chosen"] = partial(plan.build().run, a, b, out)
    truth = plain(a.astype(np.float64), b.astype(np.float64), triangle)
    scale, limit = float(np.linalg.norm(truth)), 200 * float(np.finfo(row.dtype).eps)
    judge = within(lambda c: float(np.linalg.norm(c - truth)) / scale, limit, "relative error")
    timings = Contest(contenders, rounds, say=say, judge=poisoned(out, judge)).run()
    best = timings.fastest(BASELINES)
    return {
        "chosen": str(plan.candidate),
        **_against(timings, best, "chosen"),
        "ratios": timings.ratios(best),
    }


def _against(timings: Timings, baseline: Timing, name: str) -> dict[str, Any]:
    figures = timings.against(baseline, name)
    return {**figures, "interval": tuple(round(end, 3) for end in figures["interval"])}


def _product_error(product: str, length: int, width: int, say: Say) -> Figures:
    """The largest Frobenius error of every scheme over ten seeds, relative to float64 and to one GEMM's."""
    from ....kernels import executor_for
    from ....kernels.causal.candidates import scheme_names
    from ....kernels.causal.naive import plain
    from ....schemes_db.symmetry import ATTENTION_PRODUCTS

    triangle = ATTENTION_PRODUCTS[product]
    worst: dict[str, float] = {}
    for seed in range(ERROR_SEEDS):
        a, b = _operands(Row(product, length, width, "float32"), seed)
        truth = plain(a.astype(np.float64), b.astype(np.float64), triangle)
        results = {"standard": plain(a, b, triangle)}
        for name in scheme_names():
            results[name] = executor_for(_request(a, b, triangle), name, strategy="scheme").run(a, b)
        for name, result in results.items():
            error = float(np.linalg.norm(result - truth) / np.linalg.norm(truth))
            worst[name] = max(worst.get(name, 0.0), error)
        say(f"seed {seed}")
    ours = max(error for name, error in worst.items() if name != "standard")
    return {"errors": worst, "ratio_of_errors": ours / worst["standard"], "seeds": ERROR_SEEDS}


def _attention_error(length: int, width: int, say: Say) -> Figures:
    """The largest Frobenius error of the output of attention by every scheme, over ten seeds, against SDPA's."""
    import torch

    from ....kernels.causal.candidates import scheme_names, stable_scheme_names
    from ....kernels.torch.attention import causal_attention

    attention = torch.nn.functional.scaled_dot_product_attention
    worst: dict[str, float] = {}
    for seed in range(ERROR_SEEDS):
        generator = torch.Generator().manual_seed(seed)
        q, k, v = (torch.randn(1, 1, length, width, generator=generator) for _ in range(3))
        truth = attention(q.double(), k.double(), v.double(), is_causal=True)
        results = {"standard": _standard_attention(q, k, v)}
        for name in scheme_names():
            results[name] = causal_attention(q, k, v, scheme=name)
        for name, result in results.items():
            worst[name] = max(worst.get(name, 0.0), float((result - truth).norm() / truth.norm()))
        say(f"seed {seed}")
    # The bar is for what is chosen without being named; the others' figures stand beside it.
    ours = max(worst[name] for name in stable_scheme_names())
    return {"errors": worst, "ratio_of_errors": ours / worst["standard"], "seeds": ERROR_SEEDS}


def _standard_attention(q: Any, k: Any, v: Any) -> Any:
    """Full product, mask, softmax, full product."""
    import torch

    length = q.shape[-2]
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    scores = (q / q.shape[-1] ** 0.5 @ k.mT).masked_fill(future, -torch.inf)
    return scores.softmax(-1) @ v


def rounding(product: str, dtype: str, seed: int, say: Say) -> Figures:
    """ECA's tables 3 and 4: errors of elements at L=4096, d=128, sums and products rounded to the dtype."""
    import torch

    from ....kernels.causal.candidates import scheme_names, scheme_program
    from ....kernels.causal.naive import by_program, plain
    from ....schemes_db.resolve import resolve
    from ....schemes_db.symmetry import ATTENTION_PRODUCTS

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
    there = torch.ones_like(truth).tril().bool() if product == "QK" else torch.ones_like(truth).bool()
    return {
        "max_error": {name: float((x.double() - truth).abs()[there].max()) for name, x in results.items()},
        "mean_error": {name: float((x.double() - truth).abs()[there].mean()) for name, x in results.items()},
    }


def _weights(q: Any, k_transposed: Any, width: int) -> Any:
    import torch

    scores = q @ k_transposed / width**0.5
    future = torch.ones_like(scores).triu(1).bool()
    return scores.masked_fill(future, -torch.inf).softmax(-1)


def _attention(length: int, width: int, backward: bool, rounds: int, seed: int, say: Say) -> Figures:
    """One head by materialised products and by torch's fused attention."""
    import torch

    from ....kernels.torch.attention import causal_attention, pays

    generator = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(1, 1, length, width, generator=generator, requires_grad=backward) for _ in range(3))
    ask = torch.randn(1, 1, length, width, generator=generator)

    def run(by: str) -> Any:
        out = causal_attention(q, k, v, strategy=by)
        return torch.autograd.grad(out, (q, k, v), ask) if backward else out

    with torch.enable_grad():
        timings = Contest({by: partial(run, by) for by in ("products", "sdpa")}, rounds, say=say).run()
    chosen = "products" if pays(q, k, v) else "sdpa"
    return {"chosen": chosen, **_against(timings, timings["sdpa"], "products")}


SUITE = Suite(
    "causal",
    "triangular products and causal attention against strips of GEMM, full + tril and fused attention",
    _cases,
    ("chosen", "baseline", "ratio", "interval", "ratio_of_errors"),
    code_of("causal_cuda"),
    ratios,
)
