"""Products in e4m3 with block scales and in int8 on a GPU, beside what torch alone does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ...errors import PlanError
from ...kernels import Request, plan_for
from ...kernels.arrays import Tensor, torch
from ...kernels.cuda.bench import drawn_operands
from ...kernels.cuda.fp8 import Quantised, missing_block_scales, packed_columns, unpacked, vendor_reason
from ...kernels.cuda.fp8 import multiply_by_vendor as scaled_mm
from ...kernels.cuda.fp8_naive import BLOCK, LARGEST
from ...kernels.cuda.int8 import multiply_by_vendor, vendor_operand
from ...kernels.cuda.machine import require_device
from ...kernels.dense.packed import FP8_VENDOR
from ...kernels.precision import FP8
from .case import Case, Figures, Options, Say, shown
from .contest import Call, Truth, poisoned, within
from .gpu_products import CHECKED_ROWS, Sizes, graphed, operands, paired
from .table import rows

PRODUCTS = rows("gpu_8_bits")
"""Products by dtype: in e4m3 decoding and short prefill by two layers of a language model; of int8 cubes, a layer for
few and many rows, and sizes whose rows are no whole segments."""

WORSE = 1.2
"""Most times the error of torch's product in e4m3 that ours may have: both round the same operands."""


def row_quantised(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return A (m, k) in e4m3 and its scales (m, k / 128) as `scaled_mm` takes them, in plain torch: to be compiled."""
    import torch  # itself, for torch.compile

    blocks = a.float().view(len(a), -1, BLOCK)
    largest = blocks.abs().amax(-1)
    scales = torch.where(largest == 0, 1.0, largest / LARGEST)
    bits = (blocks / scales[..., None]).to(torch.float8_e4m3fn)
    return bits.view_as(a), scales.t().contiguous().t()


def rival(k: int, n: int, packed: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the product by a quantised B of torch alone: A quantised by torch.compile, then `scaled_mm`."""
    compiled, right = torch.compile(row_quantised), unpacked(packed, k, n)

    def run(a: Tensor) -> Tensor:
        bits, scales = compiled(a)
        return scaled_mm(Quantised(bits, scales.t()), right)

    return run


def fp8_executor(sizes: Sizes) -> Any:
    """Return the executor of our product of bfloat16 matrices of these sizes.

    Raises:
        PlanError: it cannot run here.
    """
    return plan_for(Request(*sizes, "bfloat16", device="cuda", static="B", precision=FP8), strategy=FP8_VENDOR).build()


def fp8_product(sizes: Sizes, rounds: int, seed: int, say: Say) -> Figures:
    """Ratios of torch's product in e4m3 ("vendor") to ours, and to torch's in bfloat16, all replayed from CUDA graphs.

    "vendor" is one compiled kernel that quantises A and `scaled_mm` with the same block scales; "ratio" is to the
    same product behind our kernel that quantises A, the strategy `fp8-vendor`.
    """
    require_device()
    if reason := missing_block_scales(torch.device("cuda", torch.cuda.current_device())) or vendor_reason(*sizes):
        raise PlanError(reason)
    a, b = operands("bfloat16", sizes, seed)
    truth, theirs = Truth(a, b, CHECKED_ROWS), rival(*sizes[1:], packed_columns(b))
    vendor = truth.error(theirs(a))
    named: dict[str, Call] = {"vendor": partial(theirs, a), "bfloat16": partial(torch.matmul, a, b)}
    ours = fp8_executor(sizes)
    named[FP8_VENDOR] = partial(ours.run, a, ours.prepare(b))
    calls = {name: graphed(call) for name, call in named.items()}
    figures = paired(calls, sizes, rounds, say, judge=within(truth.error, WORSE * vendor))
    return {**figures, "ratio": figures[FP8_VENDOR], "error": figures["errors"][FP8_VENDOR]}


def fp8_ahead(sizes: Sizes) -> None:
    """Our product of a row on operands without data."""
    require_device()
    (a, b), ours = operands("bfloat16", sizes, blank=True), fp8_executor(sizes)
    ours.run(a, ours.prepare(b))


MAX_ABS = 7
"""The stated magnitude: C fits int32 at every size here."""

VENDOR, BY_ROWS, COPIED = "vendor", "vendor, B by rows", "vendor, B copied"
"""torch's `_int_mm` of a B stored by columns, by rows, and by rows with a copy to columns before every product."""

ANY_ENTRY = 128
"""The stated magnitude that needs no check of the entries."""


def int8_request(sizes: Sizes, max_abs: int = MAX_ABS) -> Request:
    """The request of our product of entries up to a magnitude."""
    return Request(*sizes, "int8", device="cuda", max_abs=max_abs)


def int8_executors(sizes: Sizes) -> dict[str, Any]:
    """Return the executors of our product, with and without a check of the entries, by name.

    Raises:
        PlanError: one cannot run.
    """
    of = {"int8": int8_request(sizes), "int8 unchecked": int8_request(sizes, ANY_ENTRY)}
    return {name: plan_for(one, strategy="int8").build() for name, one in of.items()}


def int8_product(sizes: Sizes, rounds: int, seed: int, say: Say) -> Figures:
    """Ratios of torch's `_int_mm` of a B stored by columns ("vendor") to ours, and to that of B by rows, copied or not.

    "ratio" is that of the fastest `_int_mm` to our product of B by rows, "offline" to that of a B prepared before.
    Ours but "unchecked" compare the entries with the stated magnitude;
    `_int_mm` gets copies with zeros where its rules need them.
    """
    require_device()
    a, b, out = drawn_operands(int8_request(sizes), seed)
    turned = b.mT.contiguous().mT
    calls: dict[str, Call] = {
        VENDOR: lambda: multiply_by_vendor(a, vendor_operand(turned, copies=True), out),
        BY_ROWS: lambda: multiply_by_vendor(a, vendor_operand(b, copies=False), out),
        COPIED: lambda: multiply_by_vendor(a, vendor_operand(b, copies=True), out),
    }
    for name, executor in int8_executors(sizes).items():
        prepared = executor.prepare(b)
        for label, right in (("", b), (", B by columns", turned), (", offline", prepared)):
            calls[name + label] = partial(executor.run, a, right, out)
    # Exact: sums of products up to 49 in float64.
    some = torch.linspace(0, len(a) - 1, min(len(a), 128), device="cuda").long()
    truth = a[some].double() @ b.double()
    wrong = within(lambda c: float((c[some].double() != truth).sum()), 0, "wrong entries")
    figures = paired(calls, sizes, rounds, say, judge=poisoned(out, wrong, -1))
    faster = max(1.0, figures[BY_ROWS], figures[COPIED])
    return {**figures, "ratio": figures["int8"] / faster, "offline": figures["int8, offline"] / faster}


def int8_ahead(sizes: Sizes) -> None:
    """Our products of a row on operands without data."""
    require_device()
    a, b, _ = drawn_operands(int8_request(sizes), 0, blank=True)
    vendor_operand(b, copies=True)
    for executor in int8_executors(sizes).values():
        for right in (b, b.new_empty(b.mT.shape).mT):
            executor.run(a, right)


def cases_of_8_bits(options: Options, rounds: int) -> Iterator[Case]:
    """Yield the rows "fp8 MxKxN", "int8 N" and "int8 MxKxN"."""
    for one in PRODUCTS:
        product, ahead = (fp8_product, fp8_ahead) if one.dtype == "fp8" else (int8_product, int8_ahead)
        run = partial(product, one.sizes, rounds, options.seed)
        yield Case(f"{one.dtype} {shown(one.sizes)}", run, ahead=partial(ahead, one.sizes))
