"""Suite "gpu": products by schemes on a GPU against the vendor's, squares and rectangles; the parts of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from ....errors import PlanError, VerificationError
from ....kernels.arrays import Tensor, torch
from ....kernels.codegen.triton_tiles import candidates
from ....kernels.cuda.level import cuda_level
from ....kernels.cuda.machine import require_device
from ....kernels.cuda.stack import DTYPES as STACKED
from ....kernels.dense.arrangements import arrangements, levels_of
from ....kernels.torch import dispatch
from ....kernels.torch.dispatch import recipe_plan
from ....kernels.torch.recipe import ProductRecipe
from ....lazy import LateModule
from ...gpu_profile import DTYPES, settled
from ..case import Case, Figures, Options, Say, at_least, barred, cube, shown
from ..contest import Call, Contest, CudaClock
from ..gpu_8_bits import cases_of_8_bits
from ..gpu_layers import choice_cases, layer, layer_cases
from ..gpu_products import SPENT, VendorJudge, ahead, all_ahead, graphed, operands, paired, peak_bytes, request_for
from ..rivals import compiled_formula, jitted_on_gpu, tasks_adding
from ..table import rows

ops: Any = LateModule("....kernels.torch.ops", __package__)

SMALL = cube(64)
"""A product whose time is that of its launches."""

TWO = "strassen/strassen"


GATE = rows("gpu_gate")
"""Products that are checked first: recipe, sizes, and the storage order of the operands."""


LAYER_DTYPES, LAYERS = ("float32", "float64", "bfloat16"), 12
"""Layers of large models of each dtype, unless --sample says otherwise; suite "falcon" has more of them."""

SPAN = {"tf32": (1e-3, 30e-3)}
"""Seconds of the products that layers of a dtype are drawn from: short ones in tf32 are bound by the sums of blocks."""


PRODUCTS = rows("gpu")
"""Sizes, dtypes, recipes, and the bars of ratios with B's sums made in every call and before."""


@barred
def cases(options: Options) -> Iterator[Case]:
    rounds = options.rounds or 7
    for dtype in DTYPES:
        products = ((one.recipe, dtype, one.sizes, one.order == "columns") for one in _gated(dtype))
        yield Case(f"gate {dtype}", partial(_gate, dtype, options.seed), ahead=partial(all_ahead, *products))
    for rank in (7, 49, 343):
        for dtype in ("bfloat16", "float32", "float64"):
            key, of = f"{dtype} R={rank}", (dtype, rank)
            yield Case(f"combine {key}", partial(combine, *of, rounds), ahead=partial(sums_ahead, *of, False))
            yield Case(f"tile {key}", partial(tile, *of, rounds), ahead=partial(sums_ahead, *of, True))
    for product in PRODUCTS:
        run = partial(_product, product, rounds, options.seed)
        wanted = at_least(ratio=product.ratio, offline=product.offline)
        key = f"product {product.dtype} {shown(product.sizes)} {product.recipe.replace('strassen', '2x2x2')}"
        yield Case(key, run, wanted, partial(_product_ahead, product))
    for size in (1536, 2048, 3072):
        run, sums = partial(_graph, size, rounds, options.seed), partial(ahead, TWO, "float32", cube(size))
        yield Case(f"graph float32 {size}", run, ahead=sums)
    sums = partial(ahead, TWO, "float32", SMALL)
    yield Case("launch", partial(_launch, options.seed), ahead=sums)
    yield Case(
        "memory float32 8192",
        partial(_memory, rounds, options.seed),
        # The kernels of the pieces of any workspace are those of fewer rows.
        ahead=partial(all_ahead, *((TWO, "float32", (rows, 8192, 8192)) for rows in (8192, 2048))),
    )
    for dtype, size in (("float32", 8192), ("bfloat16", 16384)):
        run = partial(_rivals, dtype, size, rounds, options.seed)
        levels = ((recipe, dtype, cube(size)) for recipe in (TWO, "strassen"))
        yield Case(f"rivals {dtype} {size}", run, ahead=partial(all_ahead, *levels))
    for dtype in DTYPES:
        for size in (1024, 4096, 8192, 16384):
            # The vendor has small products done sooner than launches can be told apart by a ratio: their bar is ms.
            run, sums = partial(_auto, dtype, size, rounds, options.seed), partial(ahead, "auto", dtype, cube(size))
            yield Case(f"auto {dtype} {size}", run, ahead=sums)
    yield from cases_of_8_bits(options, rounds)
    yield from layer_cases(options, LAYER_DTYPES, LAYERS, span=SPAN)
    yield from choice_cases(options)


def _gate(dtype: str, seed: int, say: Say) -> Figures:
    """Schemes, methods, sizes and storage orders against float64, and twice the same bits."""
    worst = 0.0
    products = _gated(dtype)
    for one in products:
        recipe, sizes, order = one.recipe, one.sizes, one.order
        say(f"{recipe} {'x'.join(map(str, sizes))} {order}")
        a, b = operands(dtype, sizes, seed, order == "columns")
        judge = VendorJudge(a, b, torch.finfo(a.dtype).eps)
        result = ops.bilinear_mm(a, b, recipe)
        worst = max(worst, judge(f"{recipe} {dtype} {sizes}", result) / judge.vendor)
        if not torch.equal(result, ops.bilinear_mm(a, b, recipe)):
            raise VerificationError(f"{recipe} {dtype} {sizes}: two runs differ")
    return {"products": len(products), "worst_error_ratio": worst}


def _gated(dtype: str) -> list[Any]:
    """The products of the gate in a dtype: stacks are in half precision."""
    return [one for one in GATE if dtype in STACKED or not one.recipe.endswith("@scheme:stack")]


def _product(product: Any, rounds: int, seed: int, say: Say) -> Figures:
    """Ratios to torch's product, with B's sums made in every call and once before all calls, in turn."""
    a, b = operands(product.dtype, product.sizes, seed)
    made = dispatch.pack(ProductRecipe.parse(product.recipe), b, product.sizes[0])
    if made is None:
        raise PlanError("the vendor's product is best")
    packed, judge = made[1], VendorJudge(a, b)
    calls = {
        "vendor": lambda: torch.matmul(a, b),
        "online": lambda: ops.bilinear_mm(a, b, product.recipe),
        "offline": lambda: ops.bilinear_mm(a, b, product.recipe, packed),
    }
    figures = paired(calls, product.sizes, rounds, say, judge=judge)
    return {**figures, "error": figures["errors"]["online"], "vendor_error": judge.vendor}


def _product_ahead(product: Any) -> None:
    """The product; B's sums made before are its own, but may be of another plan."""
    ahead(product.recipe, product.dtype, product.sizes)
    a, b = operands(product.dtype, product.sizes, blank=True)
    recipe = ProductRecipe.parse(product.recipe)
    if (made := dispatch.pack(recipe, b, product.sizes[0])) is not None:
        dispatch.run(recipe, a, b, packed=made[1])


def _graph(size: int, rounds: int, seed: int, say: Say) -> Figures:
    """Both products replayed from CUDA graphs, so that no launch counts."""
    a, b = operands("float32", cube(size), seed)
    of: dict[str, Any] = {"vendor": torch.matmul, "online": partial(ops.bilinear_mm, recipe=TWO)}
    calls = {name: graphed(partial(call, a, b)) for name, call in of.items()}
    return paired(calls, cube(size), rounds, say, judge=VendorJudge(a, b))


def _launch(seed: int, say: Say) -> Figures:
    """Milliseconds added to torch's product of 64 x 64 matrices: by `auto`, and by two levels in three stages.

    "graph" is what the three stages add where both are replayed from CUDA graphs.
    """
    a, b = operands("float32", SMALL, seed)
    stages = partial(ops.bilinear_mm, recipe=TWO)
    vendor, auto, ours = (settled(partial(call, a, b)) for call in (torch.matmul, ops.matmul, stages))
    plain, replayed = (settled(graphed(partial(call, a, b))) for call in (torch.matmul, stages))
    found = {"overhead": auto - vendor, "stages_overhead": ours - vendor, "graph_overhead": replayed - plain}
    return {f"{name}_ms": 1e3 * seconds for name, seconds in (found | {"vendor": vendor}).items()}


def _memory(rounds: int, seed: int, say: Say) -> Figures:
    """Memory of a run against what was predicted, and what a quarter of the workspace costs."""

    a, b = operands("float32", cube(8192), seed)
    plan = recipe_plan(ProductRecipe.parse(TWO), request_for("float32", cube(8192)))
    recipe = f"{TWO};max_workspace={plan.workspace // 2}"  # A~ and H in four pieces, B~ whole
    peak = peak_bytes(lambda: ops.bilinear_mm(a, b, TWO)) - a.nbytes  # C is as large as A
    calls = {"vendor": lambda: ops.bilinear_mm(a, b, TWO), "online": lambda: ops.bilinear_mm(a, b, recipe)}
    figures = paired(calls, cube(8192), rounds, say)
    return {
        "peak_bytes": peak,
        "predicted_bytes": plan.workspace,
        "share_of_predicted": peak / plan.workspace,
        "pieces_ratio": figures["ratio"],
    }


def _rivals(dtype: str, size: int, rounds: int, seed: int, say: Say) -> Figures:
    """The plain scheme under torch.compile and jax.jit, and a task a product that adds into C, beside ours."""
    a, b = operands(dtype, cube(size), seed)
    scheme = ProductRecipe(("strassen",)).schemes()[0]
    calls: dict[str, Call] = {
        "vendor": lambda: torch.matmul(a, b),
        "online": lambda: ops.bilinear_mm(a, b, TWO),
        "one level": lambda: ops.bilinear_mm(a, b, "strassen"),
        "tasks": tasks_adding(scheme, a, b),
    }
    compiled = {"compiled": compiled_formula(scheme, a, b, say), "jax": jitted_on_gpu(scheme, a, b, say)}
    calls |= {name: call for name, call in compiled.items() if call is not None}
    return paired(calls, cube(size), rounds, say, judge=VendorJudge(a, b))


def _auto(dtype: str, size: int, rounds: int, seed: int, say: Say) -> Figures:
    """Return the ratio of the planner's choice, with this machine's measured profile, to the vendor's product."""
    figures = layer(dtype, cube(size), rounds, seed, SPENT, say, graphs=False)
    return {**figures, "added_ms": figures["online_ms"] - figures["vendor_ms"]}


LEVELS = {7: 1, 49: 2, 343: 3}
"""Levels of Strassen with so many products."""


class Sums:
    """The sums of A and the merge of C in so many products, with a matrix and a stack of random numbers.

    On the device "meta" they have no data: for `Case.ahead`.
    """

    def __init__(self, dtype: str, rank: int, device: str = "cuda") -> None:
        require_device()
        levels = LEVELS[rank]
        schemes = ProductRecipe(("strassen",) * levels).schemes()
        self.core = cuda_level(arrangements(levels_of(schemes, levels))[0][1])
        size = 8192 if dtype == "float64" else 16384
        self.matrix = torch.randn(1, size, size, device=device).to(getattr(torch, dtype))
        block = size >> levels
        self.stack = torch.randn(1, rank, block, block, device=device).to(self.matrix.dtype)
        self.target = torch.empty_like(self.stack)

    @property
    def sides(self) -> tuple[tuple[str, Any, Tensor], ...]:
        """Name, combination, and the stack that it writes or reads."""
        return ("split", self.core.left, self.target), ("merge", self.core.merge, self.stack)


def _shares(sums: Sums, calls: Mapping[str, Call], rounds: int) -> tuple[float, dict[str, float]]:
    """Bytes a second of a copy, and of splits or merges as shares of it, all in turn."""
    times = Contest({"copy": lambda: sums.target.copy_(sums.stack), **calls}, rounds, CudaClock()).run().medians
    copied, moved = 2 * sums.stack.nbytes / times["copy"], sums.matrix.nbytes + sums.stack.nbytes
    return copied, {name: moved / times[name] / copied for name in calls}


def combine(dtype: str, rank: int, rounds: int, say: Say) -> Figures:
    """Bandwidth of a split and a merge of a matrix, as shares of a copy's, in turn."""
    sums = Sums(dtype, rank)
    calls = {name: partial(side.run, sums.matrix, stack) for name, side, stack in sums.sides}
    copied, shares = _shares(sums, calls, rounds)
    return {
        "copy_tb_s": copied / 1e12,
        **{f"{name}_tb_s": share * copied / 1e12 for name, share in shares.items()},
        **{f"{name}_share": share for name, share in shares.items()},
    }


def sums_ahead(dtype: str, rank: int, every: bool) -> None:
    """The kernels of `combine`, or of `every` launch that `tile` measures."""
    sums = Sums(dtype, rank, "meta")
    for _, side, stack in sums.sides:
        for one in candidates(side.form.map, sums.matrix.element_size()) if every else (None,):
            side.run(sums.matrix, stack, one)


def tile(dtype: str, rank: int, rounds: int, say: Say) -> Figures:
    """All launches worth a measurement, in turn: the best, as those of kernels/planning/data/measured.toml."""
    sums = Sums(dtype, rank)
    itemsize = sums.matrix.element_size()
    figures: dict[str, Any] = {}
    for name, side, stack in sums.sides:
        tiles = {str(one): one for one in candidates(side.form.map, itemsize)}
        say(f"{name}: {len(tiles)} launches")
        calls = {label: partial(side.run, sums.matrix, stack, one) for label, one in tiles.items()}
        _, shares = _shares(sums, calls, rounds)
        best = max(shares, key=lambda label: shares[label])
        one = tiles[best]
        key = (side.form.map.sources, len(side.form.map.results), itemsize)
        figures[f"{name}_share"] = shares[best]
        figures[f"{name}_shares"] = shares
        figures[f"{name}_measured"] = f"{key}: Tile({one.rows}, {one.cols}, {one.warps}, {one.ahead}),"
    return figures
