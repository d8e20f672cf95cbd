"""Suite "precision": measured and bounded errors by scheme and level, against published stability factors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ....kernels.precision import arithmetic_of
from ..case import Bar, Case, Figures, Options, Say, Suite
from ..cpu_products import operands

SCHEMES = ("strassen", "winograd", "laderman", "4x4x4-r49", "3x4x5-r47", "4x4x5-r63")

PUBLISHED_GROWTH = {"strassen": 12.0, "winograd": 18.0}
"""Source: Ballard, Benson, Druinsky, Lipshitz, Schwartz (2016), Table 1: the factor e_max of one level."""

SIZE = 1024


CUDA_DTYPES = ("bfloat16", "float16", "tf32", "float32", "float64")


def _cases(options: Options) -> Iterator[Case]:
    run, dtypes = _error, ["float32", "float64"]
    if options.device == "cuda":
        run, dtypes = _error_on_gpu, [*CUDA_DTYPES]
    for dtype in options.dtypes or dtypes:
        for name in SCHEMES:
            for levels in (1, 2):
                bars = (Bar("share_of_bound", 1.0, at_most=True),)
                yield Case(f"{name} {levels} {dtype}", partial(run, name, levels, dtype, options.seed), 4, bars)


def _error(name: str, levels: int, dtype: str, seed: int, say: Say) -> Figures:
    """The largest error of an element over k max|A| max|B|, its bound, and the classical product's."""
    from ....kernels import matmul, plan_for
    from ....kernels.planning.error import error_bound
    from ....kernels.request import Request
    from ....schemes_db.resolve import resolve

    a, b = operands((SIZE, SIZE, SIZE), dtype, seed)
    scheme = resolve(name)[0]
    exact = np.longdouble if dtype == "float64" else np.float64
    rows = np.linspace(0, SIZE - 1, 64).astype(int)
    truth = a[rows].astype(exact) @ b.astype(exact)
    scale = SIZE * float(np.abs(a).max()) * float(np.abs(b).max())
    request = Request.of(a, b)
    bound = error_bound(plan_for(request, scheme, levels).candidate.program, request)
    ours, plain = (
        float(np.abs(result[rows] - truth).max()) / scale for result in (matmul(a, b, scheme, levels), a @ b)
    )
    return _figures(name, ours, plain, bound)


def _error_on_gpu(name: str, levels: int, dtype: str, seed: int, say: Say) -> Figures:
    """The same on a GPU, where sums are made in float32 or better and kept in the dtype."""
    import torch

    from ....kernels.cuda.requests import request_of
    from ....kernels.planning.error import error_bound
    from ....kernels.torch.dispatch import recipe_plan
    from ....kernels.torch.ops import bilinear_mm
    from ....kernels.torch.recipe import ProductRecipe
    from ..gpu_products import operands as tensors

    a, b = tensors(dtype, (SIZE, SIZE, SIZE), seed)
    recipe = "/".join([name] * levels)
    request = request_of(a, b, arithmetic_of(dtype).precision)
    bound = error_bound(recipe_plan(ProductRecipe((name,) * levels), request).candidate.program, request)
    rows = torch.linspace(0, SIZE - 1, 64, device=a.device).long()
    left, right = (x.double().cpu().numpy() for x in (a[rows], b))
    truth = left.astype(np.longdouble) @ right.astype(np.longdouble)
    scale = SIZE * float(a.abs().max()) * float(b.abs().max())
    ours, plain = (
        float(np.abs(result[rows].double().cpu().numpy() - truth).max()) / scale
        for result in (bilinear_mm(a, b, recipe), torch.matmul(a, b))
    )
    return _figures(name, ours, plain, bound)


def _figures(name: str, ours: float, plain: float, bound: float) -> Figures:
    """The errors of a scheme and of the classical product beside the bound and the growth factor of one level."""
    from ....schemes_db.costs import growth_factor
    from ....schemes_db.resolve import resolve

    return {
        "error": ours,
        "bound": bound,
        "share_of_bound": ours / bound,
        "classical_error": plain,
        "ratio": ours / plain,
        "growth_factor": growth_factor(resolve(name)[0]),
        "published_growth": PUBLISHED_GROWTH.get(name),
    }


SUITE = Suite(
    "precision",
    "measured and bounded errors by scheme and level, against published stability factors",
    _cases,
    ("error", "bound", "classical_error", "ratio", "growth_factor", "published_growth"),
    ("kernels",),
)
