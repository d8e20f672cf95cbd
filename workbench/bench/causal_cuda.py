"""The rows of suite "causal" on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import PlanError
from .case import Bar, Case, Figures, Options, Say
from .contest import Call, Contest, CudaClock, poisoned, require_right, within

if TYPE_CHECKING:
    from ...kernels import Request

Tensor = Any

SIZES = ((4096, 4096), (8192, 4096), (8192, 8192))
"""(L, d)"""

BARRED = SIZES[1:]
"""The sizes at which a scheme must gain."""

BARS = {
    ("QK", "float32"): (Bar("ratio", 1.15), Bar("over_halving", 1.03)),
    ("QK", "float64"): (Bar("ratio", 1.10),),
}
SPENT = 0.05
"""Seconds that a contender runs in a round."""

KERNEL_BAR = Bar("kernel_over_full", 1.68)
"""The bar of the triangle-skipping kernel, bfloat16, L = d = 8192."""

MOST_ERROR, SEEDS = 3.0, 10
"""Frobenius errors over that of the plain product in the same dtype, and of how many operands."""

LIMITS = {"float64": 1e-12, "float32": 2e-5, "tf32": 5e-3, "float16": 2e-2, "bfloat16": 1e-1}


def cases(options: Options) -> Iterator[Case]:
    """The gate, then masked Q K^T and P V by every strategy."""
    rounds = options.rounds or 7
    yield Case("gate", partial(_gate, options.seed), 20, ahead=_gate_ahead)
    for length, width in SIZES:
        for dtype in options.dtypes or ("bfloat16", "float32", "float64"):
            for product in ("QK", "PV", "dV"):
                bars = BARS.get((product, dtype), ()) if (length, width) in BARRED else ()
                if (product, dtype, length, width) == ("QK", "bfloat16", 8192, 8192):
                    bars = (KERNEL_BAR,)
                of = product, length, width, dtype
                run = partial(_timed, *of, rounds, options.seed)
                yield Case(f"{product} {dtype} L={length} d={width}", run, 10, bars, partial(_timed_ahead, *of))
    bars = (Bar("ratio_of_errors", MOST_ERROR, at_most=True),)
    for length, width in SIZES:
        for product in ("QK", "PV", "dV"):
            run = partial(_error, product, length, width, options.seed)
            ahead = partial(_timed_ahead, product, length, width, "float32")
            yield Case(f"error {product} float32 L={length} d={width}", run, 5, bars, ahead)
    for length, width in ((4096, 128), (8192, 128), (4096, 2048)):
        yield Case(f"attention bfloat16 L={length} d={width}", partial(_attention, length, width, rounds), 6)


def _device() -> Any:
    import torch

    if not torch.cuda.is_available():
        raise PlanError("no GPU is visible here; leave --device cuda out")
    return torch.device("cuda")


def _operands(product: str, length: int, width: int, dtype: str, seed: int | None) -> tuple[Tensor, Tensor]:
    """Standard normal operands of a product; without data where there is no seed."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    generator = None if seed is None else torch.Generator("cuda").manual_seed(seed)
    device = "meta" if seed is None else _device()

    def draw(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, device=device).to(getattr(torch, dtype))

    if product == "QK":
        return draw(length, width), draw(length, width).mT
    weights = draw(length, length).tril()
    return (weights.mT if product == "dV" else weights), draw(length, width)


GATED = ("float32", "float64", "bfloat16", "float16")

SHAPES = ((4, 2, 333, 333, 65), (2, 1, 257, 129, 1), (1, 1, 1024, 1024, 512), (2, 1, 4096, 4096, 256))
"""Heads, heads that share, rows, columns and width of what is checked; the last fills the programs that stay."""


def _schemes() -> tuple[str, ...]:
    """The schemes for triangular products that are shipped, and two levels of one."""
    from ...kernels.causal.candidates import scheme_names
    from ...kernels.causal.cuda import TWO_LEVELS

    return (*scheme_names(), TWO_LEVELS)


def _request(a: Tensor, b: Tensor, triangle: Any) -> Request:
    from ...kernels.cuda.dtypes import precision_of
    from ...kernels.cuda.requests import request_of
    from ...kernels.request import structures_of

    return request_of(a, b, precision_of(a), structures=structures_of(triangle))


def _gate_ahead() -> None:
    """The products of heads that `_gate` checks."""
    import torch

    from ...kernels.products.triangular import run_triangular
    from ...schemes_db.symmetry import Triangle

    _device()
    for dtype in GATED:
        blank = partial(torch.empty, device="meta", dtype=getattr(torch, dtype))
        for heads, shared, rows, cols, width in SHAPES:
            size, each = min(rows, cols), heads // shared  # below the square there are plain products
            q, k = blank(2, shared, each, size, width), blank(2, shared, 1, size, width)
            weights = blank(2, shared, each, size, size)
            for by in _gated_by(rows):
                for a, b, triangle in ((q, k.mT, Triangle("out")), (weights, k, Triangle("left"))):
                    run_triangular(_request(a, b, triangle), a, b, None, by)


def _gated_by(rows: int) -> tuple[str | None, ...]:
    """The planner's choice, and strategies and schemes by name."""
    return (None, "kernel", "strips", *(_schemes() if rows % 4 == 0 else ()))


def _gate(seed: int, say: Say) -> Figures:
    """Every product of the public functions, odd sizes and GQA, against float64."""
    import torch

    from ...kernels.products.triangular import STRATEGIES
    from ...kernels.triangular import causal_pv, causal_qk, syrk, trmm

    device = _device()
    torch.manual_seed(seed)
    worst: dict[str, float] = {}
    for dtype in GATED:
        kind = getattr(torch, dtype)
        for heads, shared, rows, cols, width in SHAPES:
            q = torch.randn(2, heads, rows, width, device=device).to(kind)
            k = torch.randn(2, shared, cols, width, device=device).to(kind)
            wide = k.double().repeat_interleave(heads // shared, 1)
            seen = torch.ones(rows, cols, device=device).tril().bool()
            weights = torch.where(seen, torch.randn(2, heads, rows, cols, device=device), float("nan")).to(kind)
            clean = torch.where(seen, weights, 0).double()
            for by in _gated_by(rows):
                named: Any = {"strategy" if by in STRATEGIES else "scheme": by}
                pairs = (
                    (causal_qk(q, k, **named), (q.double() @ wide.mT).tril()),
                    (causal_pv(weights, k, **named), clean @ wide),
                )
                for got, wanted in pairs:
                    error = float((got.double() - wanted).norm() / wanted.norm())
                    require_right(f"{by} {dtype} {rows}x{cols}x{width}", error, LIMITS[dtype])
                    worst[dtype] = max(worst.get(dtype, 0.0), error)
        square = torch.randn(300, 300, device=device).to(kind)
        other = torch.randn(300, 70, device=device).to(kind)
        for got, wanted in (
            (trmm(square, other, lower=False), square.double().triu() @ other.double()),
            (trmm(square, other.mT, side="right"), other.double().mT @ square.double().tril()),
            (syrk(other), (other.double() @ other.double().mT).tril()),
        ):
            require_right(f"trmm or syrk {dtype}", float((got.double() - wanted).norm() / wanted.norm()), LIMITS[dtype])
        say(dtype)
    return {"worst_errors": worst}


def _timed(product: str, length: int, width: int, dtype: str, rounds: int, seed: int, say: Say) -> Figures:
    """All contenders in turn; `ratio` is the choice over the better strips, `over_plain` over all baselines."""
    import torch

    from ...kernels import decision_for
    from ...schemes_db.symmetry import ATTENTION_PRODUCTS

    triangle = ATTENTION_PRODUCTS[product]
    a, b = _operands(product, length, width, dtype, seed)
    out = a.new_empty((length, b.shape[1]))
    plan = decision_for(_request(a, b, triangle)).plan
    contenders = _contenders(a, b, out, triangle)
    contenders["chosen"] = partial(plan.build().run, a, b, out)
    rows = torch.linspace(0, length - 1, 128).long().to(a.device)
    truth = _truth(a, b, triangle, rows)
    judge = within(lambda c: float((c[rows].double() - truth).norm() / truth.norm()), LIMITS[dtype])
    timings = Contest(contenders, rounds, CudaClock(SPENT), say, poisoned(out, judge)).run()
    times, errors = timings.medians, timings.errors
    ours = times.pop("chosen")
    return {
        "ms": {name: 1e3 * seconds for name, seconds in {**times, "chosen": ours}.items()},
        "ratio": min(times["8 strips"], times["16 strips"]) / ours,
        "over_plain": min(times[name] for name in PLAIN) / ours,
        "over_halving": times["halving:strassen"] / ours,
        "kernel_over_full": times["full + tril"] / times["kernel"] if "kernel" in times else None,
        "chosen": str(plan.candidate),
        "fastest": min(times, key=lambda name: times[name]),
        "baseline": "strips",
        "ratio_of_errors": {name: error / errors["full + tril"] for name, error in errors.items()},
    }


def _error(product: str, length: int, width: int, seed: int, say: Say) -> Figures:
    """The largest errors of some rows over ten operands, of the whole product and of what a call takes by itself."""
    import torch

    from ...kernels import plan_for
    from ...schemes_db.symmetry import ATTENTION_PRODUCTS

    triangle = ATTENTION_PRODUCTS[product]
    worst, chosen = {"standard": 0.0, "ours": 0.0}, ""
    for each in range(seed, seed + SEEDS):
        a, b = _operands(product, length, width, "float32", each)
        rows = torch.linspace(0, length - 1, 128).long().to(a.device)
        truth = _truth(a, b, triangle, rows)
        whole = a @ b
        plan = plan_for(_request(a, b, triangle))
        chosen = str(plan.candidate)
        ours = plan.build().run(a, b)
        for name, result in (("standard", whole.tril_() if triangle.side == "out" else whole), ("ours", ours)):
            worst[name] = max(worst[name], float((result[rows].double() - truth).norm() / truth.norm()))
        say(f"seed {each}")
    return {"errors": worst, "ratio_of_errors": worst["ours"] / worst["standard"], "seeds": SEEDS, "chosen": chosen}


PLAIN = ("full + tril", "8 strips", "16 strips", "halving")
"""The baselines: the vendor's product of the whole, of strips, and of halves."""


def _contenders(a: Tensor, b: Tensor, out: Tensor, triangle: Any) -> dict[str, Call]:
    """All that is timed beside the choice: the baselines, halving by Strassen's scheme, schemes, the kernel."""
    import torch

    from ...kernels import plan_for
    from ...kernels.cuda.strips import strips
    from ...schemes_db.resolve import resolve
    from ...schemes_db.straightline import program_of
    from .baselines.causal import halving

    found: dict[str, Call] = {}

    def whole() -> None:
        torch.mm(a, b, out=out)
        if triangle.side == "out":
            out.tril_()

    found["full + tril"] = whole
    for count in (8, 16):
        found[f"{count} strips"] = partial(strips, a, b, out, triangle, count)
    found["halving"] = partial(halving, a, b, out, triangle)
    found["halving:strassen"] = partial(halving, a, b, out, triangle, program_of(resolve("strassen")[0]))
    request = _request(a, b, triangle)
    for name in _schemes():
        try:
            found[name] = partial(plan_for(request, name, strategy="scheme").build().run, a, b, out)
        except PlanError:  # its grid does not divide the sizes
            continue
    if a.element_size() == 2:
        found["kernel"] = partial(plan_for(request, strategy="kernel").build().run, a, b, out)
    return found


def _timed_ahead(product: str, length: int, width: int, dtype: str) -> None:
    """All contenders on operands without data."""
    from ...schemes_db.symmetry import ATTENTION_PRODUCTS

    _device()
    a, b = _operands(product, length, width, dtype, None)
    for run in _contenders(a, b, a.new_empty((length, b.shape[1])), ATTENTION_PRODUCTS[product]).values():
        run()


def _truth(a: Tensor, b: Tensor, triangle: Any, rows: Tensor) -> Tensor:
    """Some rows in float64."""
    import torch

    left = a[rows].double()
    cols = torch.arange(a.shape[1] if triangle.side == "left" else b.shape[1], device=a.device)
    seen = cols >= rows[:, None] if triangle.upper else cols <= rows[:, None]
    return (left * seen) @ b.double() if triangle.side == "left" else (left @ b.double()) * seen


def _attention(length: int, width: int, rounds: int, say: Say) -> Figures:
    """One batch of heads by materialised products and by torch's fused attention."""
    import torch

    from ...kernels.torch.attention import causal_attention

    heads = 8 if width <= 256 else 1
    q, k, v = (torch.randn(1, heads, length, width, device=_device(), dtype=torch.bfloat16) for _ in range(3))
    contenders = {by: partial(causal_attention, q, k, v, strategy=by) for by in ("products", "sdpa")}
    timings = Contest(contenders, rounds, CudaClock(SPENT), say).run()
    return {**timings.against(timings["sdpa"], "products"), "chosen": timings.fastest(contenders).name}
