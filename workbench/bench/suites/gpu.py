"""Suite "gpu": products by schemes on a GPU against the vendor's, squares and rectangles; the parts of them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ....errors import PlanError, VerificationError
from ..case import Bar, Case, Figures, Options, Say, Suite
from ..picture import ratios

Tensor = Any
Sizes = tuple[int, int, int]

LIMIT = 25.0
"""Most times the vendor's error that a product by a scheme may have; three levels in bfloat16 have 14."""

CHECKED_ROWS = 256
"""Rows of C that are compared with float64."""

DTYPES = ("bfloat16", "float16", "tf32", "float32", "float64")

TWO, THREE = "strassen/strassen", "strassen/strassen/strassen"


GATE = (
    ("strassen", (1, 1, 1), "rows"),
    ("strassen", (17, 33, 65), "rows"),
    ("strassen", (1024, 4096, 384), "rows"),
    ("strassen", (1000, 999, 1001), "rows"),
    ("strassen", (3000, 64, 4100), "columns"),
    ("2x2x3", (512, 512, 768), "columns"),
    ("laderman", (1000, 999, 1001), "rows"),
    (TWO, (4096, 4096, 4096), "rows"),
    (TWO, (1001, 333, 2000), "rows"),
    (f"{TWO}@gpu-loop", (2048, 2048, 2048), "rows"),
)
"""What is checked before anything is believed: recipe, sizes, and how the operands are stored."""


@dataclass(frozen=True)
class Product:
    """A row: sizes, dtype, recipe, and the bars of its ratios with B's sums made online and offline."""

    dtype: str
    sizes: Sizes
    recipe: str
    online: float | None = None
    offline: float | None = None
    seconds: float = 10.0

    @property
    def key(self) -> str:
        m, k, n = self.sizes
        size = f"{m}" if m == k == n else f"{m}x{k}x{n}"
        return f"product {self.dtype} {size} {self.recipe.replace('strassen', '2x2x2')}"

    @property
    def bars(self) -> tuple[Bar, ...]:
        wanted = (("ratio", self.online), ("offline", self.offline))
        return tuple(Bar(figure, value) for figure, value in wanted if value is not None)


def _square(size: int) -> Sizes:
    return size, size, size


PRODUCTS = (
    Product("float32", _square(4096), TWO, 1.20),
    Product("float32", _square(8192), THREE, 1.40, 1.445),
    Product("float64", _square(16384), THREE, 1.27, 1.305, 20),
    Product("bfloat16", _square(16384), TWO, 1.10, 1.16),
    Product("bfloat16", _square(32768), TWO, 1.16, 1.23, 25),
    Product("tf32", _square(16384), f"{TWO}@gpu-loop", 1.05),
    Product("float32", _square(2048), TWO),
    Product("float32", _square(8192), TWO),
    Product("float64", _square(8192), TWO),
    Product("float16", _square(16384), TWO),
    Product("tf32", _square(16384), f"{TWO}@gpu-batched"),
    Product("float32", _square(8192), "laderman"),
    Product("float32", _square(8192), "laderman/strassen"),
    Product("float32", _square(8192), "4x4x5"),
    Product("float32", _square(8192), "5x5x5"),
    Product("bfloat16", _square(16384), "laderman"),
    Product("bfloat16", _square(16384), "4x4x5"),
    Product("bfloat16", _square(16384), "5x5x5"),
    Product("bfloat16", (16384, 7168, 18432), TWO),
    Product("bfloat16", (32768, 8192, 8192), TWO),
    Product("float32", (8192, 4096, 11264), TWO),
    Product("float64", (8192, 4096, 11264), TWO),
)


def _cases(options: Options) -> Iterator[Case]:
    rounds = options.rounds or 7
    for dtype in DTYPES:
        yield Case(f"gate {dtype}", partial(_gate, dtype, options.seed), 30)
    yield Case("launch", partial(_launch, options.seed), 5, (Bar("overhead_ms", 0.008, at_most=True),))
    for rank in (7, 49, 343):
        for dtype in ("bfloat16", "float32", "float64"):
            bars = (Bar("split_share", 0.9), Bar("merge_share", 0.9))
            yield Case(
                f"combine {dtype} R={rank}", partial(_combine, dtype, rank, rounds), 30 if rank > 300 else 6, bars
            )
    for product in PRODUCTS:
        yield Case(product.key, partial(_product, product, rounds, options.seed), product.seconds, product.bars)
    for size in (1536, 2048, 3072):
        yield Case(f"graph float32 {size}", partial(_graph, size, rounds, options.seed), 8)
    yield Case(
        "memory float32 8192",
        partial(_memory, rounds, options.seed),
        12,
        (Bar("share_of_predicted", 1.05, True), Bar("share_of_predicted", 0.95)),
    )
    yield Case("rivals float32 8192", partial(_rivals, "float32", 8192, rounds, options.seed), 60)
    yield Case("rivals bfloat16 16384", partial(_rivals, "bfloat16", 16384, rounds, options.seed), 60)
    for dtype in DTYPES:
        for size in (1024, 4096, 8192, 16384):
            even = (Bar("ratio", 0.99),)
            yield Case(f"auto {dtype} {size}", partial(_auto, dtype, size, rounds, options.seed), 10, even)


def _ready() -> None:
    from ....kernels.gpu.machine import require_device

    require_device()


def _operands(dtype: str, sizes: Sizes, seed: int) -> tuple[Tensor, Tensor]:
    """Standard normal matrices; for tf32 torch is told to round float32."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    generator = torch.Generator("cuda").manual_seed(seed)
    m, k, n = sizes
    real = torch.float32 if dtype == "tf32" else getattr(torch, dtype)
    return tuple(torch.randn(shape, generator=generator, device="cuda", dtype=real) for shape in ((m, k), (k, n)))  # type: ignore[return-value]


def _error(a: Tensor, b: Tensor, c: Tensor) -> float:
    """Relative error, in the Frobenius norm, of some rows of c against float64."""
    import torch

    rows = torch.linspace(0, len(a) - 1, min(len(a), CHECKED_ROWS), device=a.device).long()
    truth = a[rows].double() @ b.double()
    return float((c[rows].double() - truth).norm() / truth.norm())


def _checked(name: str, a: Tensor, b: Tensor, c: Tensor, vendor: float) -> float:
    import torch

    error = _error(a, b, c)
    # In float64 torch's own product is the truth: what a sum of k rounded terms may be off stands in for its error.
    expected = max(vendor, torch.finfo(c.dtype).eps * a.shape[-1] ** 0.5 / 2)
    if not error <= LIMIT * expected:
        raise VerificationError(f"{name} came out wrong: error {error:.1e}, torch's {vendor:.1e}; nothing was timed")
    return error


def _gate(dtype: str, seed: int, say: Say) -> Figures:
    """Schemes, ways, sizes and storage orders against float64, and twice the same bits."""
    _ready()
    import torch

    from ....kernels.ops import bilinear_mm

    worst = 0.0
    for recipe, sizes, order in GATE:
        say(f"{recipe} {'x'.join(map(str, sizes))} {order}")
        a, b = _operands(dtype, sizes, seed)
        if order == "columns":
            a, b = (x.t().contiguous().t() for x in (a, b))
        vendor = _error(a, b, a @ b) + torch.finfo(a.dtype).eps
        result = bilinear_mm(a, b, recipe)
        worst = max(worst, _checked(f"{recipe} {dtype} {sizes}", a, b, result, vendor) / vendor)
        if not torch.equal(result, bilinear_mm(a, b, recipe)):
            raise VerificationError(f"{recipe} {dtype} {sizes}: two runs differ")
    return {"products": len(GATE), "worst_error_ratio": worst}


def _launch(seed: int, say: Say) -> Figures:
    """Milliseconds added to torch's product where there is next to nothing to multiply: by `auto`, by three stages."""
    _ready()
    from ....kernels.gpu.clock import settled
    from ....kernels.ops import bilinear_mm

    a, b = _operands("float32", _square(64), seed)
    vendor, auto, stages = (
        settled(call) for call in (lambda: a @ b, lambda: bilinear_mm(a, b, "auto"), lambda: bilinear_mm(a, b, TWO))
    )
    return {
        "overhead_ms": 1e3 * (auto - vendor),
        "stages_overhead_ms": 1e3 * (stages - vendor),
        "vendor_ms": 1e3 * vendor,
    }


def _combine(dtype: str, rank: int, rounds: int, say: Say) -> Figures:
    """Bandwidth of a split and a merge of a matrix, as shares of a copy's, in turn."""
    _ready()
    import torch

    from ....kernels.decide import arrangements, levels_of
    from ....kernels.gpu.clock import interleaved
    from ....kernels.gpu.recipe import Recipe
    from ....kernels.gpu.three_stage import Way, three_stage

    levels = {7: 1, 49: 2, 343: 3}[rank]
    core = three_stage(arrangements(levels_of(Recipe(("strassen",) * levels).schemes(), levels))[0][1], Way.BATCHED)
    size = 8192 if dtype == "float64" else 16384
    matrix = torch.randn(1, size, size, device="cuda").to(getattr(torch, dtype))
    block = size >> levels
    stack = matrix.new_empty(1, rank, block, block)
    target = torch.empty_like(stack)
    calls = {
        "copy": lambda: target.copy_(stack),
        "split": lambda: core.left.run(matrix, stack),
        "merge": lambda: core.merge.run(matrix, stack),
    }
    say(f"compiling R={rank}")
    times = interleaved(calls, rounds)
    moved = (matrix.numel() + stack.numel()) * matrix.element_size()
    copied = 2 * stack.numel() * stack.element_size() / times["copy"].median
    rates = {name: moved / times[name].median for name in ("split", "merge")}
    return {
        "copy_tb_s": copied / 1e12,
        **{f"{name}_tb_s": rate / 1e12 for name, rate in rates.items()},
        **{f"{name}_share": rate / copied for name, rate in rates.items()},
    }


def _product(product: Product, rounds: int, seed: int, say: Say) -> Figures:
    """Ratios to torch's product, with B's sums made in every call and once before all calls, in turn."""
    _ready()
    import torch

    from ....kernels.gpu import dispatch
    from ....kernels.gpu.recipe import Recipe
    from ....kernels.ops import bilinear_mm

    a, b = _operands(product.dtype, product.sizes, seed)
    made = dispatch.pack(Recipe.parse(product.recipe), b, product.sizes[0])
    if made is None:
        raise PlanError("the vendor's product is best")
    packed = made[1]
    vendor = _error(a, b, torch.matmul(a, b))
    error = _checked(product.recipe, a, b, bilinear_mm(a, b, product.recipe), vendor)
    _checked("packed", a, b, bilinear_mm(a, b, product.recipe, packed), vendor)
    calls = {
        "vendor": lambda: torch.matmul(a, b),
        "online": lambda: bilinear_mm(a, b, product.recipe),
        "offline": lambda: bilinear_mm(a, b, product.recipe, packed),
    }
    figures = _ratios(calls, product.sizes, rounds, say)
    return {**figures, "error": error, "vendor_error": vendor}


def _ratios(calls: Mapping[str, Callable[[], object]], sizes: Sizes, rounds: int, say: Say) -> dict[str, Any]:
    """Paired ratios of "vendor" to the others ("ratio" is that of "online"), and what the clock and power were."""
    import statistics

    from ....kernels.gpu.clock import interleaved

    state: list[tuple[float, float]] = []

    def on_round(number: int) -> None:
        say(f"round {number} of {rounds}")
        state.append(_clock_and_power())

    times = interleaved(calls, rounds, 0.15, on_round)
    base = times["vendor"].seconds
    m, k, n = sizes
    figures: dict[str, Any] = {"vendor_ms": 1e3 * times["vendor"].median}
    for name in calls:
        if name == "vendor":
            continue
        paired = [x / y for x, y in zip(base, times[name].seconds, strict=True)]
        label = "ratio" if name == "online" else name
        figures[label] = statistics.median(paired)
        figures[f"{label}_range"] = [min(paired), max(paired)]
        figures[f"{name}_ms"] = 1e3 * times[name].median
        figures[f"{name}_tflops"] = 2e-12 * m * k * n / times[name].median
    figures["clock_mhz"], figures["power_w"] = (statistics.median(column) for column in zip(*state, strict=True))
    return figures


def _clock_and_power() -> tuple[float, float]:
    """The first GPU's clock and draw; not a number where nvidia-smi does not tell."""
    query = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits", "-i", "0"]
    try:
        clock, power = subprocess.run(query, capture_output=True, text=True, timeout=5, check=True).stdout.split(",")
        return float(clock), float(power)
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0.0, 0.0


def _graph(size: int, rounds: int, seed: int, say: Say) -> Figures:
    """Both products replayed from CUDA graphs, so that no launch counts."""
    _ready()
    import torch

    from ....kernels.ops import bilinear_mm

    a, b = _operands("float32", _square(size), seed)
    calls: dict[str, Callable[[], object]] = {}
    for name, call in (("vendor", torch.matmul), ("online", partial(bilinear_mm, recipe=TWO))):
        call(a, b)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = call(a, b)
        graph.replay()
        _checked(name, a, b, result, _error(a, b, a @ b))
        calls[name] = graph.replay
    return _ratios(calls, _square(size), rounds, say)


def _memory(rounds: int, seed: int, say: Say) -> Figures:
    """Memory of a run against what was predicted, and what a quarter of the workspace costs."""
    _ready()
    import torch

    from ....kernels.gpu.dispatch import plan_of
    from ....kernels.gpu.executor import request_of
    from ....kernels.gpu.recipe import Recipe
    from ....kernels.ops import bilinear_mm

    a, b = _operands("float32", _square(8192), seed)
    plan = plan_of(Recipe.parse(TWO), request_of(a, b, "float32"))
    recipe = f"{TWO};max_workspace={plan.workspace // 2}"  # A~ and H in four pieces, B~ whole
    out = bilinear_mm(a, b, TWO)
    del out
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    out = bilinear_mm(a, b, TWO)
    peak = torch.cuda.max_memory_allocated() - before - out.numel() * out.element_size()
    calls = {"vendor": lambda: bilinear_mm(a, b, TWO), "online": lambda: bilinear_mm(a, b, recipe)}
    figures = _ratios(calls, _square(8192), rounds, say)
    return {
        "peak_bytes": peak,
        "predicted_bytes": plan.workspace,
        "share_of_predicted": peak / plan.workspace,
        "pieces_ratio": figures["ratio"],
    }


def _rivals(dtype: str, size: int, rounds: int, seed: int, say: Say) -> Figures:
    """The plain scheme under torch.compile, and a task a product that adds into C, beside ours."""
    _ready()
    import torch

    from ....kernels.codegen.maps import maps_of
    from ....kernels.gpu import naive
    from ....kernels.gpu.recipe import Recipe
    from ....kernels.ops import bilinear_mm
    from ....schemes_db.straightline import program_of

    a, b = _operands(dtype, _square(size), seed)
    scheme = Recipe(("strassen",)).schemes()[0]
    plain = program_of(scheme, cse=False)
    compiled = torch.compile(partial(naive.worked, maps_of(plain), scheme.target.shape))
    vendor = _error(a, b, a @ b)
    calls: dict[str, Callable[[], Any]] = {
        "vendor": lambda: torch.matmul(a, b),
        "online": lambda: bilinear_mm(a, b, TWO),
        "one level": lambda: bilinear_mm(a, b, "strassen"),
        "compiled": lambda: compiled(a, b),
        "tasks": lambda: naive.by_products(plain, a, b),
    }
    for name, call in calls.items():
        say(name)
        _checked(name, a, b, call(), vendor)
    return _ratios(calls, _square(size), rounds, say)


def _auto(dtype: str, size: int, rounds: int, seed: int, say: Say) -> Figures:
    """What the planner chooses, with this machine's measured profile, against the vendor's product."""
    _ready()
    import torch

    from ....kernels.gpu.dispatch import plan_of
    from ....kernels.gpu.executor import request_of
    from ....kernels.gpu.machine import device_profile
    from ....kernels.gpu.recipe import Recipe
    from ....kernels.ops import matmul

    if device_profile(0) is None:
        raise PlanError("this GPU was not measured: run lcma doctor --profile --device cuda first")
    a, b = _operands(dtype, _square(size), seed)
    plan = plan_of(Recipe(), request_of(a, b, dtype))
    _checked("auto", a, b, matmul(a, b), _error(a, b, a @ b))
    figures = _ratios(
        {"vendor": lambda: torch.matmul(a, b), "online": lambda: matmul(a, b)}, _square(size), rounds, say
    )
    return {**figures, "plan": str(plan.candidate), "predicted_ms": 1e3 * (plan.seconds or 0.0)}


SUITE = Suite(
    "gpu",
    "Products by schemes on a GPU against the vendor's, and the stages they are made of.",
    _cases,
    ("ratio", "offline", "vendor_ms", "online_ms", "offline_ms", "split_share", "merge_share", "error", "power_w"),
    ("kernels/gpu", "kernels/codegen", "kernels/ops.py"),
    ratios,
)
