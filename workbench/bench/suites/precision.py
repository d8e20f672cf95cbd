"""Suite "precision": measured and bounded errors by scheme and level, against published stability factors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ..case import Bar, Case, Figures, Options, Say, Suite
from ..contest import operands
from ..picture import ratios

SCHEMES = ("strassen", "winograd", "laderman", "4x4x4-r49", "3x4x5-r47", "4x4x5-r63")

PUBLISHED_GROWTH = {"strassen": 12.0, "winograd": 18.0}
"""Source: Ballard, Benson, Druinsky, Lipshitz, Schwartz (2016), Table 1: the factor e_max of one level."""

SIZE = 1024


def _cases(options: Options) -> Iterator[Case]:
    for dtype in options.dtypes or ("float32", "float64"):
        for name in SCHEMES:
            for levels in (1, 2):
                bars = (Bar("share_of_bound", 1.0, at_most=True),)
                yield Case(f"{name} {levels} {dtype}", partial(_error, name, levels, dtype, options.seed), 4, bars)


def _error(name: str, levels: int, dtype: str, seed: int, say: Say) -> Figures:
    """The largest error of an element over k max|A| max|B|, its bound, and the classical product's."""
    from ....kernels import matmul, plan_for
    from ....kernels.decide.error import error_bound
    from ....kernels.request import Request
    from ....schemes_db.costs import growth_factor
    from ....schemes_db.library import resolve

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
    growth = growth_factor(scheme)
    return {
        "error": ours,
        "bound": bound,
        "share_of_bound": ours / bound,
        "classical_error": plain,
        "ratio": ours / plain,
        "growth_factor": growth,
        "published_growth": PUBLISHED_GROWTH.get(name),
    }


SUITE = Suite(
    "precision",
    "measured and bounded errors by scheme and level, against published stability factors",
    _cases,
    ("error", "bound", "classical_error", "ratio", "growth_factor", "published_growth"),
    ("kernels",),
    ratios,
)
