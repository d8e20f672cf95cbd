"""Products in e4m3 with block scales on a GPU, B quantised before, beside what torch alone does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ...errors import PlanError
from ...kernels import Request, plan_for
from ...kernels.cuda.fp8 import (
    Quantised,
    missing_block_scales,
    multiply_by_vendor,
    packed_columns,
    unpacked,
    vendor_reason,
)
from ...kernels.cuda.fp8_naive import BLOCK
from ...kernels.cuda.machine import require_device
from ...kernels.dense.fp8 import NAME
from ...kernels.e4m3 import LARGEST
from ...kernels.precision import FP8
from .case import Case, Figures, Options, Say
from .contest import Call, Truth, within
from .gpu_products import CHECKED_ROWS, Sizes, blank, graphed, operands, paired

Tensor = Any

ROWS, WEIGHTS = (16, 64, 256, 1024), ((4096, 4096), (4096, 11008))
"""Rows of A, and sizes (k, n) of B: decoding and short prefill, and two layers of a language model."""

WORSE = 1.2
"""Most times the error of torch's product in e4m3 that ours may have: both round the same operands."""

SECONDS = 40.0
"""About what a row takes, compiling included."""


def row_quantised(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return A (m, k) in e4m3 and its scales (m, k / 128) as `scaled_mm` takes them, in plain torch: to be compiled."""
    import torch

    blocks = a.float().view(len(a), -1, BLOCK)
    largest = blocks.abs().amax(-1)
    scales = torch.where(largest == 0, 1.0, largest / LARGEST)
    bits = (blocks / scales[..., None]).to(torch.float8_e4m3fn)
    return bits.view_as(a), scales.t().contiguous().t()


def rival(k: int, n: int, packed: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the product by a quantised B of torch alone: A quantised by torch.compile, then `scaled_mm`."""
    import torch

    compiled, right = torch.compile(row_quantised), unpacked(packed, k, n)

    def run(a: Tensor) -> Tensor:
        bits, scales = compiled(a)
        return multiply_by_vendor(Quantised(bits, scales.t(), k), right)

    return run


def executor(sizes: Sizes) -> Any:
    """Return the executor of our product of bfloat16 matrices of these sizes.

    Raises:
        PlanError: it cannot run here.
    """
    return plan_for(Request(*sizes, "bfloat16", device="cuda", static="B", precision=FP8), strategy=NAME).build()


def product(sizes: Sizes, rounds: int, seed: int, say: Say) -> Figures:
    """Ratios of torch's product in e4m3 ("vendor") to ours, and to torch's in bfloat16, all replayed from CUDA graphs.

    "vendor" is one compiled kernel that quantises A and `scaled_mm` with the same block scales; "ratio" is to the
    same product behind our kernel that quantises A, the strategy `fp8-vendor`.
    """
    import torch

    require_device()
    if reason := missing_block_scales(torch.device("cuda", torch.cuda.current_device())) or vendor_reason(*sizes):
        raise PlanError(reason)
    a, b = operands("bfloat16", sizes, seed)
    truth, theirs = Truth(a, b, CHECKED_ROWS), rival(*sizes[1:], packed_columns(b))
    vendor = truth.error(theirs(a))
    named: dict[str, Call] = {"vendor": partial(theirs, a), "bfloat16": partial(torch.matmul, a, b)}
    ours = executor(sizes)
    named[NAME] = partial(ours.run, a, ours.prepare(b))
    calls = {name: graphed(call) for name, call in named.items()}
    figures = paired(calls, sizes, rounds, say, judge=within(truth.error, WORSE * vendor))
    return {**figures, "ratio": figures[NAME], "error": figures["errors"][NAME]}


def product_ahead(sizes: Sizes) -> None:
    """Our product of a row on operands without data."""
    require_device()
    (a, b), ours = blank("bfloat16", sizes), executor(sizes)
    ours.run(a, ours.prepare(b))


def fp8_cases(options: Options, rounds: int) -> Iterator[Case]:
    """Yield the rows "fp8 MxKxN"."""
    for k, n in WEIGHTS:
        for m in ROWS:
            run = partial(product, (m, k, n), rounds, options.seed)
            yield Case(f"fp8 {m}x{k}x{n}", run, SECONDS, ahead=partial(product_ahead, (m, k, n)))
