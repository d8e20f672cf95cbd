"""The products of causal attention on a GPU by every strategy, at odd sizes and with shared heads, against float64."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...kernels.arrays import torch
from ...kernels.causal.candidates import scheme_names
from ...kernels.causal.cuda import TWO_LEVELS
from ...kernels.cuda.dtypes import precision_of
from ...kernels.cuda.machine import require_device
from ...kernels.cuda.requests import request_of
from ...kernels.products.triangular import STRATEGIES, run_triangular
from ...kernels.request import structures_of
from ...kernels.triangular import causal_pv, causal_qk, syrk, trmm
from ...schemes_db.symmetry import Triangle
from .case import Figures, Say
from .contest import relative, require_right

LIMITS = {"float64": 1e-12, "float32": 2e-5, "tf32": 5e-3, "float16": 2e-2, "bfloat16": 1e-1}

GATED = ("float32", "float64", "bfloat16", "float16")

SHAPES = ((4, 2, 333, 333, 65), (2, 1, 257, 129, 1), (1, 1, 1024, 1024, 512), (2, 1, 4096, 4096, 256))
"""Heads, heads that share, rows, columns and width of what is checked; the last fills the programs that stay."""


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
        error = require_right(f"{name} {dtype}", relative(got, wanted), LIMITS[dtype])
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
