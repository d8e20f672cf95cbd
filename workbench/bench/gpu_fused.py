"""The ablation of fused products on a GPU: a step of FalconGEMM's at a time, from separate tasks to the fused kernel.

Source of the steps: FalconGEMM (arXiv:2605.06057), sections III and VI.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from .case import Figures, Say
from .gpu_l2 import count, hit_rates
from .gpu_products import RATES, Sizes, Truth, accepted, blank, operands, paired

Tensor = Any
Call = Callable[[], Tensor]

SCHEME = "strassen"

STEPS = {
    "tasks": "a task a product: its sums, the product, added into C",
    "three-stage": "all sums, one batched product, one combination of H",
    "stack": "the same with our kernel, which interleaves the products of a tile",
    "fused by rows": "products added into C in registers, tiles in order of rows",
    "fused": "the same, eight rows of tiles together: cache-aware order",
    "split-group": "groups of products cut evenly between the programs",
    "split-group aligned": "whole rounds of groups first, then cut ones",
}
"""The steps by their figures. "alone: ..." are the last two stages, given the sums of A and B."""


def ablation(dtype: str, size: int, rounds: int, seed: int, say: Say) -> Figures:
    """Ratios of the vendor's product to every step, with errors, the clock and, behind the rounds, the hits of the L2.

    "l2_hit_rates" are the shares of sectors by step, "l2_hit_rate" that of the fused kernel alone, or the reason why
    they are not readable.

    Raises:
        VerificationError: a product is wrong; nothing was timed.
        PlanError: there is no GPU whose kernels can be fused.
    """
    import torch

    from ...kernels.cuda.machine import require_device

    require_device()
    sizes = size, size, size
    a, b = operands(dtype, sizes, seed)
    truth = Truth(a, b)
    vendor = truth.error(torch.matmul(a, b))
    errors: dict[str, float] = {}
    calls: dict[str, Call] = {}
    for name, call in steps(a, b).items():
        say(name)
        errors[name] = accepted(name, truth.error(call()), a, vendor)
        calls[name] = call
    figures = paired({"vendor": lambda: torch.matmul(a, b), **calls}, sizes, rounds, say)
    figures |= {"ratio": figures["fused"], "errors": errors, "vendor_error": vendor}
    say("hits of the L2")
    torch.cuda.empty_cache()
    rates = hit_rates(f"from {__name__} import count_steps; count_steps({dtype!r}, {size}, {seed})", list(calls))
    if isinstance(rates, str):
        return {**figures, "l2_hit_rate": rates}
    return {**figures, "l2_hit_rate": rates["alone: fused"], "l2_hit_rates": rates}


def count_steps(dtype: str, size: int, seed: int) -> None:
    """Run every step while ncu counts; for the process that `ablation` starts."""
    count(steps(*operands(dtype, (size, size, size), seed)))


def steps(a: Tensor, b: Tensor) -> dict[str, Call]:
    """Every step as a call that gives C, and those that begin with the sums of A and B."""
    from ...kernels.cuda import naive
    from ...kernels.cuda.fused import GROUP
    from ...kernels.cuda.level import Method, cuda_level
    from ...schemes_db.resolve import resolve
    from ...schemes_db.straightline import program_of

    scheme = resolve(SCHEME)[0]
    program = program_of(scheme)
    batched, stack, fused = (cuda_level(program, way) for way in (Method.BATCHED, Method.STACK, Method.FUSED))
    out = a.new_empty((1, a.shape[0], b.shape[1]))

    def run(level: Any) -> Tensor:
        level.run(a[None], b[None], out)
        return out[0]

    def sums() -> tuple[Tensor, Tensor]:
        bm, bk, bn = fused.blocks(a.shape[0], b.shape[0], b.shape[1], a.element_size())
        lefts, rights = (a.new_empty((1, fused.flat.rank, *block)) for block in ((bm, bk), (bk, bn)))
        naive.combine(fused.left, a[None], lefts)
        naive.combine(fused.right, b[None], rights)
        return lefts, rights

    def add(lefts: Tensor, rights: Tensor, options: Mapping[str, Any]) -> Tensor:
        assert fused.fused is not None
        if naive.takes_triton(a):
            fused.fused.run(lefts, rights, out, **options)
        else:
            fused.fused.run_plain(lefts, rights, out)
        return out[0]

    def merged(lefts: Tensor, rights: Tensor) -> Tensor:
        products = lefts @ rights
        naive.combine(batched.merge, out, products)
        return out[0]

    kinds: dict[str, dict[str, Any]] = {
        "fused by rows": {"group": 1},
        "fused": {"group": GROUP},
        "split-group": {"split": True, "aligned": False},
        "split-group aligned": {"split": True},
    }
    found: dict[str, Call] = {
        "tasks": lambda: naive.by_products(program_of(scheme, cse=False), a, b),
        "three-stage": partial(run, batched),
        "stack": partial(run, stack),
    }
    found |= {name: lambda options=options: add(*sums(), options) for name, options in kinds.items()}  # type: ignore[misc]
    given = sums()
    found["alone: three-stage"] = lambda: merged(*given)
    found |= {f"alone: {name}": partial(add, *given, options) for name, options in kinds.items()}
    return found


def ablation_ahead(dtype: str, size: int) -> None:
    """Every step on operands without data.

    Raises:
        PlanError: there is no GPU.
    """
    from ...kernels.cuda.machine import require_device

    require_device()
    sizes: Sizes = size, size, size
    for call in steps(*blank(dtype, sizes)).values():
        call()


def seconds_of_ablation(dtype: str, size: int, rounds: int) -> float:
    """About what a row takes."""
    return 10 + 15 * rounds * max(0.15, 2 * size**3 / RATES[dtype])
