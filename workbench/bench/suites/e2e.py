"""Suite "e2e": whole transformer blocks of large models' widths, torch's layers against `accelerate_`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

from ....errors import PlanError
from ....kernels.arrays import torch
from ....kernels.cuda.machine import require_device
from ....kernels.torch import dispatch
from ....kernels.torch.recipe import ProductRecipe
from ....lazy import LateModule
from ..case import Case, Figures, Options, Say, barred
from ..requirements import seeded_torch

modules: Any = LateModule("....kernels.torch.modules", __package__)
prefill: Any = LateModule("..prefill", __package__)

MODELS = ("deepseek-r1", "qwen3.5-397b", "hunyuanvideo")

ROWS = (128, 512, 2048, 8192, 16384, 20480)
"""Tokens of a prefill."""

ON_CPU = (128, 512, 2048)
"""The same on a processor."""

TRAINED = 8192
"""Tokens of a training step on a GPU; on a processor the most of a prefill."""

DTYPES = ("float32", "float64", "bfloat16", "float16")


@barred
def cases(options: Options) -> Iterator[Case]:
    on_cpu = options.device == "cpu"
    prefilled = ON_CPU if on_cpu else ROWS
    # Where weights are trained in half precision, masters of them would be in float32.
    trained = [dtype for dtype in options.dtypes or ("float32",) if dtype in ("float32", "float64")]
    dtypes = options.dtypes or (("float32",) if on_cpu else ("float32", "bfloat16", "float16"))
    for kind, some, rows in (("prefill", dtypes, prefilled), ("train", trained, (ON_CPU[-1] if on_cpu else TRAINED,))):
        for dtype, name, m in product(some, MODELS, rows):
            run = partial(measured, kind, name, m, rows, dtype, options)
            ahead = None if on_cpu else partial(_ahead, name, m, dtype, kind == "train")
            yield Case(f"{kind} {name} {dtype} {m}", run, ahead=ahead)


def measured(
    kind: str, name: str, rows: int, all_rows: tuple[int, ...], dtype: str, options: Options, say: Say
) -> Figures:
    """The forward pass of one stack, or a training step."""
    if dtype not in DTYPES:
        raise PlanError(f"suite e2e has {', '.join(DTYPES)}, not {dtype}")
    seeded_torch(options, measured=True)
    training = kind == "train"
    return prefill.measured(
        prefill.STACKS[name], rows, (rows,) if training else all_rows, dtype, options, say, training
    )


def _ahead(name: str, rows: int, dtype: str, training: bool) -> None:
    """The products of a stack's layers, and with sums of the weights made before, on tensors without data."""
    require_device()
    torch.backends.cuda.matmul.allow_tf32 = False
    model = prefill.stack(prefill.STACKS[name], 1, device="meta", dtype=getattr(torch, dtype))
    weights = [place.weight for place in modules.linear_places(model, new_weight=False)]
    for weight in {tuple(one.shape): one for one in weights}.values():
        outputs, inputs = weight.shape
        x, gradient = weight.new_empty(rows, inputs), weight.new_empty(rows, outputs)
        dispatch.run(ProductRecipe(), x, weight.t())
        if training:
            dispatch.run(ProductRecipe(), gradient, weight)
            dispatch.run(ProductRecipe(), x.t(), gradient)
        elif (made := dispatch.pack(ProductRecipe(), weight.t(), rows)) is not None:
            dispatch.run(made[0], x, weight.t(), packed=made[1])
