"""int8 products into int32 on a GPU beside torch's `_int_mm`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from ...kernels import Request, plan_for
from ...kernels.cuda.int8 import multiply_by_vendor, vendor_operand
from ...kernels.cuda.machine import require_device
from .case import Case, Figures, Options, Say, cube, shown
from .contest import Call, poisoned, within
from .gpu_products import Sizes, paired

Tensor = Any

MAX_ABS = 7
"""The stated magnitude: C fits int32 at every size here."""

CUBES = (2048, 4096, 8192, 16384)
"""Sides of cubes."""

OTHERS = ((16, 4096, 11008), (256, 4096, 11008), (4096, 4096, 11008), (4099, 4099, 4099))
"""Other sizes: a layer for few and many rows, and one whose rows are no whole segments."""

SECONDS = 30.0
"""About what a row takes, compiling included."""

VENDOR, BY_ROWS, COPIED = "vendor", "vendor, B by rows", "vendor, B copied"
"""torch's `_int_mm` of a B stored by columns, by rows, and by rows with a copy to columns before every product."""

ANY_ENTRY = 128
"""The stated magnitude that needs no check of the entries."""


def executors(sizes: Sizes) -> dict[str, Any]:
    """Return the executors of our product, with and without a check of the entries, by name.

    Raises:
        PlanError: one cannot run.
    """
    request = Request(*sizes, "int8", device="cuda", max_abs=MAX_ABS)
    unchecked = replace(request, max_abs=ANY_ENTRY)
    of = {"int8": request, "int8 unchecked": unchecked}
    return {name: plan_for(one, strategy="int8").build() for name, one in of.items()}


def product(sizes: Sizes, rounds: int, seed: int, say: Say) -> Figures:
    """Ratios of torch's `_int_mm` of a B stored by columns ("vendor") to ours, and to that of B by rows, copied or not.

    "ratio" is that of the fastest `_int_mm` to our product of B by rows, "offline" to that of a B prepared before.
    Ours but "unchecked" compare the entries with the stated magnitude;
    `_int_mm` gets copies with zeros where its rules need them.
    """
    import torch

    require_device()
    m, k, n = sizes
    generator = torch.Generator("cuda").manual_seed(seed)
    a, b = (
        torch.randint(-MAX_ABS, MAX_ABS + 1, size, dtype=torch.int8, device="cuda", generator=generator)
        for size in ((m, k), (k, n))
    )
    turned, out = b.mT.contiguous().mT, torch.empty((m, n), dtype=torch.int32, device="cuda")
    calls: dict[str, Call] = {
        VENDOR: lambda: multiply_by_vendor(a, vendor_operand(turned, copies=True), out),
        BY_ROWS: lambda: multiply_by_vendor(a, vendor_operand(b, copies=False), out),
        COPIED: lambda: multiply_by_vendor(a, vendor_operand(b, copies=True), out),
    }
    for name, executor in executors(sizes).items():
        prepared = executor.prepare(b)
        for label, right in (("", b), (", B by columns", turned), (", offline", prepared)):
            calls[name + label] = partial(executor.run, a, right, out)
    # Exact: sums of products up to 49 in float64.
    rows = torch.linspace(0, m - 1, min(m, 128), device="cuda").long()
    truth = a[rows].double() @ b.double()
    wrong = within(lambda c: float((c[rows].double() != truth).sum()), 0, "wrong entries")
    figures = paired(calls, sizes, rounds, say, judge=poisoned(out, wrong, -1))
    faster = max(1.0, figures[BY_ROWS], figures[COPIED])
    return {**figures, "ratio": figures["int8"] / faster, "offline": figures["int8, offline"] / faster}


def product_ahead(sizes: Sizes) -> None:
    """Our products of a row on operands without data."""
    import torch

    require_device()
    m, k, n = sizes
    a, b = (torch.empty(size, dtype=torch.int8, device="meta") for size in ((m, k), (k, n)))
    vendor_operand(b, copies=True)
    for executor in executors(sizes).values():
        for right in (b, b.new_empty((n, k)).mT):
            executor.run(a, right)


def int8_cases(options: Options, rounds: int) -> Iterator[Case]:
    """Yield the rows "int8 N" and "int8 MxKxN"."""
    for sizes in (*map(cube, CUBES), *OTHERS):
        run = partial(product, sizes, rounds, options.seed)
        yield Case(f"int8 {shown(sizes)}", run, SECONDS, ahead=partial(product_ahead, sizes))
