"""Suite "precision": measured and bounded errors by scheme and level, against published stability factors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ....kernels import Request, matmul, plan_for
from ....kernels.planning.limits import error_bound
from ....kernels.torch.dispatch import recipe_plan
from ....kernels.torch.recipe import ProductRecipe
from ....lazy import LateModule
from ....schemes_db.costs import growth_factor
from ....schemes_db.resolve import resolve
from ..case import Case, Figures, Options, Say, barred, cube
from ..cpu_products import operands
from ..gpu_products import operands as tensors
from ..gpu_products import request_for

ops: Any = LateModule("....kernels.torch.ops", __package__)

SCHEMES = ("strassen", "winograd", "laderman", "4x4x4-r49", "3x4x5-r47", "4x4x5-r63")

PUBLISHED_GROWTH = {"strassen": 12.0, "winograd": 18.0}
"""Source: Ballard, Benson, Druinsky, Lipshitz, Schwartz (2016), Table 1: the factor e_max of one level."""

SIZE = 1024


DTYPES = {"cpu": ("float32", "float64"), "cuda": ("bfloat16", "float16", "tf32", "float32", "float64")}


@barred
def cases(options: Options) -> Iterator[Case]:
    for dtype in options.dtypes or DTYPES[options.device]:
        for name in SCHEMES:
            for levels in (1, 2):
                yield Case(f"{name} {levels} {dtype}", partial(_error, name, levels, dtype, options))


def _on_cpu(name: str, levels: int, dtype: str, seed: int) -> tuple[Any, ...]:
    """A, B, the request, the plan, the product by it, and the classical one."""
    (a, b, _), scheme = operands(cube(SIZE), dtype, seed), resolve(name)[0]
    request = Request.of(a, b)
    return a, b, request, plan_for(request, scheme, levels), matmul(a, b, scheme, levels), a @ b


def _on_gpu(name: str, levels: int, dtype: str, seed: int) -> tuple[Any, ...]:
    """The same on a GPU, where sums are made in float32 or better and stored in the dtype."""
    a, b = tensors(dtype, cube(SIZE), seed)
    request = request_for(dtype, cube(SIZE))
    plan = recipe_plan(ProductRecipe((name,) * levels), request)
    return a, b, request, plan, ops.bilinear_mm(a, b, "/".join([name] * levels)), a @ b


def _error(name: str, levels: int, dtype: str, options: Options, say: Say) -> Figures:
    """The largest error of an element over k max|A| max|B|, its bound, and the classical product's."""
    on_gpu = options.device == "cuda"
    a, b, request, plan, *products = (_on_gpu if on_gpu else _on_cpu)(name, levels, dtype, options.seed)
    bound = error_bound(plan.candidate.program, request)
    rows = np.linspace(0, SIZE - 1, 64).astype(int)
    some = [x[rows.tolist()] for x in (a, *products)] + [b]
    left, *found, right = (x.double().cpu().numpy() for x in some) if on_gpu else some
    exact = np.longdouble if on_gpu or dtype == "float64" else np.float64
    truth = left.astype(exact) @ right.astype(exact)
    scale = SIZE * float(abs(a).max()) * float(abs(b).max())
    ours, plain = (float(np.abs(one - truth).max()) / scale for one in found)
    return {
        "error": ours,
        "bound": bound,
        "share_of_bound": ours / bound,
        "classical_error": plain,
        "ratio": ours / plain,
        "growth_factor": growth_factor(resolve(name)[0]),
        "published_growth": PUBLISHED_GROWTH.get(name),
    }
