"""Suite "blr_fused": where one kernel for a low-rank product is faster than two GEMMs, by rank and sides."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from ....errors import PlanError
from ..case import Case, Figures, Options, Say, Suite
from ..picture import ratios

RANKS, SIDES, TOKENS = (32, 64, 128), (768, 1536, 3072, 4096), (1024, 8192)
"""After Figure 11 of Abillama et al., which has the ranks 128 and 256 on an A40."""

FUSED, TWO, DENSE = "fused", "strided", "dense"


def _cases(options: Options) -> Iterator[Case]:
    for dtype, n in product(options.dtypes or ("bfloat16",), options.sizes or TOKENS):
        for rank, inputs, outputs in product(RANKS, SIDES, SIDES):
            run = partial(measured, rank, inputs, outputs, n, dtype, options)
            yield Case(f"r={rank} {inputs}->{outputs} n={n} {dtype}", run, 2.5)


def measured(rank: int, inputs: int, outputs: int, n: int, dtype: str, options: Options, say: Say) -> Figures:
    """Medians of the fused kernel, of two GEMMs and of the dense layer, in turns, with errors and peak bytes.

    Raises:
        VerificationError: a result is wrong; nothing was timed.
        PlanError: the kernel cannot run, or there is too little memory.
    """
    from ....kernels.block_low_rank import LowRank
    from ....kernels.factored import request_of
    from ..blr_products import forms_of, medians

    structure = LowRank(outputs, inputs, rank)
    request = request_of(structure, n, dtype, device=options.device)
    forms, reasons = forms_of(request, options.seed, say, (DENSE, TWO, FUSED))
    if FUSED not in forms:
        raise PlanError(reasons[FUSED] if options.device == "cuda" else "the kernel is for GPUs: give --device cuda")
    seconds = medians({name: form.call for name, form in forms.items()}, n, options, say)
    return {
        "ratio": seconds[TWO] / seconds[FUSED],
        "over_dense": seconds[DENSE] / seconds[FUSED],
        "ms": {name: 1e3 * one for name, one in seconds.items()},
        "weight_bytes": structure.parameters * request.itemsize,
        "peak_bytes": {name: form.peak for name, form in forms.items()},
        "errors": {name: form.error for name, form in forms.items()},
    }


SUITE = Suite(
    "blr_fused",
    "low-rank products by one kernel against two GEMMs, by rank and sides, on a GPU; --sizes N inputs",
    _cases,
    ("ratio", "over_dense", "ms", "weight_bytes", "peak_bytes", "errors"),
    ("kernels", "workbench/bench/blr_products.py"),
    ratios,
    sized=True,
)
