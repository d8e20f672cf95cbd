"""The tables and the picture of `lcma analyse causal`, after the paper on exact causal attention."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...errors import PlanError
from ...kernels.causal.candidates import scheme_names, scheme_program
from ...kernels.causal.naive import plain, triangular
from ...kernels.codegen.maps import LinearMap, maps_of
from ...kernels.codegen.naive import apply_map
from ...kernels.cuda.naive import blocks_of, padded
from ...schemes_db import Scheme
from ...schemes_db.costs import nonzeros
from ...schemes_db.grids import Kind, Kinds
from ...schemes_db.program import Program
from ...schemes_db.resolve import resolve
from ...schemes_db.symmetry import ATTENTION_PRODUCTS, Triangle, derive
from ..bench.picture import new_figure, save
from .counts import CLASSICAL, MODELS, PRINTED, Traffic, saved, traffic
from .pebbling import blocks_beyond

Table = tuple[str, tuple[str, ...], list[tuple[object, ...]]]

DEFAULT_SCHEMES = ("eca-stage1", "4x4x4-tri-out-r34-sparse")

LENGTHS = tuple(1 << power for power in range(10, 18))
WIDTHS = (32, 64, 96, 128, 192, 256, 512, 1024)

TABLE_SIZE = (4096, 128)
"""(L, d) of ECA's tables 3 and 4."""

_TRAFFIC = ("products", "operand", "uploads", "merge", "result")


def analysis(names: Sequence[str], levels: int, errors: bool) -> list[Table]:
    """Every table: title, columns, rows.

    Raises:
        PlanError: a scheme is not for triangular products on a square grid.
    """
    schemes = {name: resolve(name)[0] for name in names}
    tables = [_models(schemes, levels), *_savings(schemes, levels), _moved(schemes), _placed(schemes)]
    return [*tables, _errors()] if errors else tables


def _models(schemes: dict[str, Scheme], levels: int) -> Table:
    rows: list[tuple[object, ...]] = []
    for model, (name, scheme) in itertools.product(MODELS, schemes.items()):
        percents = (_percent(saved(scheme, p, model.length, model.width, levels)) for p in ("QK", "PV"))
        rows.append((model.name, model.width, model.length, name, *percents))
    return f"Operations saved, {levels} level(s)", ("model", "d", "L", "scheme", "QK %", "PV %"), rows


def _savings(schemes: dict[str, Scheme], levels: int) -> Iterator[Table]:
    for name, scheme in schemes.items():
        for product in ("QK", "PV"):
            rows: list[tuple[object, ...]] = [
                (d, *(_percent(saved(scheme, product, x, d, levels)) for x in LENGTHS)) for d in WIDTHS
            ]
            yield f"{product} by {name}: % saved by d and L", ("d", *map(str, LENGTHS)), rows


def _moved(schemes: dict[str, Scheme]) -> Table:
    rows: list[tuple[object, ...]] = []
    for product in ("QK", "PV"):
        rows += [_traffic_row(product, name, traffic(scheme, product)) for name, scheme in schemes.items()]
        rows.append(_traffic_row(product, "ECA as printed", PRINTED[product]))
        rows.append(_traffic_row(product, "standard", CLASSICAL[product]))
    title = (
        "Memory traffic of one level, in elements: products x (L d)^2 / M + operand x elements of A "
        "+ (uploads + merge + result) x elements of C"
    )
    return title, ("product", "by", *_TRAFFIC), rows


def _traffic_row(product: str, name: str, moved: Traffic) -> tuple[object, ...]:
    sixteenths = (Fraction(getattr(moved, part)) * 16 for part in _TRAFFIC)
    return (product, name, *(f"{float(value):g}/16" for value in sixteenths))


def _placed(schemes: dict[str, Scheme]) -> Table:
    rows: list[tuple[object, ...]] = []
    for name, scheme in schemes.items():
        n = scheme.target.m
        stage = derive(scheme, Triangle("out").target(n, n, n))
        wanted = n * (n + 1) // 2
        rows.append((name, wanted, blocks_beyond(stage), nonzeros(stage)[2] - wanted))
    title = "Stage I in the blocks of S: what is needed beyond, and additions of blocks from products in memory"
    return title, ("scheme", "blocks of S", "beyond", "additions"), rows


def _errors() -> Table:
    """ECA's tables 3 and 4: errors of elements at L = 4096, d = 128, sums and products rounded to the dtype."""
    try:
        import torch
    except ImportError:
        raise PlanError("errors in fp16 and bf16 are measured with torch: pip install 'lcma[torch]'") from None
    length, width = TABLE_SIZE
    rows: list[tuple[object, ...]] = []
    for product, dtype in itertools.product(("QK", "PV"), ("float32", "float16", "bfloat16")):
        triangle, generator = ATTENTION_PRODUCTS[product], torch.Generator().manual_seed(0)
        q, k, v = (torch.randn(length, width, generator=generator, dtype=torch.float64) for _ in range(3))
        a, b = torch.nn.functional.normalize(q, dim=-1), torch.nn.functional.normalize(k, dim=-1).mT
        if product == "PV":
            scores = (a @ b / width**0.5).masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
            a, b = scores.softmax(-1), v
        a, b = (x.to(getattr(torch, dtype)) for x in (a, b))
        truth = plain(a.double(), b.double(), triangle)
        results = {"standard": plain(a, b, triangle)}
        for name in scheme_names():
            results[name] = by_program(scheme_program(resolve(name)[0], triangle), a, b)
        there = torch.ones_like(truth).bool().tril() if product == "QK" else torch.ones_like(truth).bool()
        for name, result in results.items():
            error = (result.double() - truth).abs()[there]
            rows.append((product, dtype, name, f"{float(error.max()):.1e}", f"{float(error.mean()):.1e}"))
    return "Errors of elements at L = 4096, d = 128", ("product", "dtype", "by", "max", "mean"), rows


def _percent(value: float) -> float:
    return round(100 * value, 2)


def draw(names: Sequence[str], levels: int, path: Path) -> None:
    """The part of the operations saved by the size of a head, for both products, the models marked.

    Raises:
        PlanError: matplotlib is not installed, or a scheme is not for triangular products.
    """
    figure, axes = new_figure(8, 5)
    length = MODELS[0].length
    for colour, name in enumerate(names):
        scheme = resolve(name)[0]
        for product, style in (("QK", "-"), ("PV", "--")):
            values = [100 * saved(scheme, product, length, d, levels) for d in WIDTHS]
            axes.plot(WIDTHS, values, style, color=f"C{colour}", label=f"{product} by {name}")
            for model in MODELS:
                percent = 100 * saved(scheme, product, model.length, model.width, levels)
                axes.plot(model.width, percent, "o", color=f"C{colour}")
    for place, model in enumerate(MODELS):
        axes.annotate(model.name, (model.width, 0), xytext=(4, 4 + 12 * place), textcoords="offset points", fontsize=8)
        axes.axvline(model.width, color="0.8", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.set_xticks(WIDTHS, [str(d) for d in WIDTHS])
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"d (L = {length}, {levels} level(s))")
    axes.set_ylabel("% of all operations saved")
    axes.legend(fontsize=8)
    save(figure, path)


def by_program(program: Program, a: Any, b: Any) -> Any:
    """Run a program of one level on torch matrices (M, K) and (K, N), every value rounded to their dtype.

    If sizes are no multiples of the grid, the operands are padded with zeros.
    """
    target, maps = program.target, maps_of(program)
    (m, k), n = a.shape, b.shape[1]
    height, depth, width = (-(-size // parts) for size, parts in zip((m, k, n), target.shape, strict=True))

    def summed(linear: LinearMap, x: Any, kinds: Kinds, places: Any) -> list[Any]:
        blocks = blocks_of(x, (len(kinds), len(kinds[0])))
        return apply_map(linear, [_part(blocks[i, j], kinds[i][j]) for i, j in places])

    lefts = summed(maps.left, padded(a, height, depth, (target.m, target.k)), target.a, maps.left_blocks)
    rights = summed(maps.right, padded(b, depth, width, (target.k, target.n)), target.b, maps.right_blocks)
    products = []
    for op, left, right in zip(maps.products, maps.left_of, maps.right_of, strict=True):
        product = lefts[left] @ rights[right]
        products.append(triangular(product, op.kind.of_upper) if op.kind.side == "out" else product)
    out = a.new_zeros(height * target.m, width * target.n)
    blocks = blocks_of(out, (target.m, target.n))
    for (i, j), total in zip(maps.stored, apply_map(maps.merge, products), strict=True):
        blocks[i, j].copy_(_part(total, target.c[i][j]))
    return out[:m, :n]


def _part(block: Any, kind: Kind) -> Any:
    return triangular(block, kind is Kind.UPPER) if kind.half else block
