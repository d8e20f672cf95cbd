"""Energy of Kronecker-sparse products: the planner's choice against the paper's baselines, and its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from ...kernels import Request
from ..contenders import Contender, PlanContest
from ..gpu_nvml import energy_of, gpu_meter
from ..output import markdown_table
from ..schemes import AUTO
from .baselines import named_plan
from .case import Say
from .contest import Contest, CudaClock
from .ks_tables import Rows, by_dtype_and_layout

BASELINES = ("bmm", "einsum", "bsr")
"""The baselines of the paper's comparison of energy."""

ROUNDS = 3

BELOW, PAPER_MEDIAN = 72.0, 0.85
"""The paper, Section 5: percent of patterns on which its kernel takes less energy than the least of BASELINES, and the
median of the ratios (float32, V100)."""


def joules_of(request: Request, seed: int, say: Say) -> dict[str, float | None]:
    """Joules of one product by the planner's choice ("auto") and by each of BASELINES that runs; None: not readable."""
    import torch

    contenders = tuple(Contender(name, named_plan(request, name), AUTO, name != AUTO) for name in (AUTO, *BASELINES))
    calls, _ = PlanContest(request, contenders, "", seed).prepared(say)
    times = Contest(calls, ROUNDS, CudaClock(), say).run().medians
    say("measuring energy")
    return energy_of(calls, gpu_meter(), times, torch.cuda.synchronize)


def energy_figures(joules: Mapping[str, float | None]) -> dict[str, Any]:
    """The figures of a row: joules, their ratios to bmm and to the least of BASELINES; None where not readable."""
    mine, permuted = joules["auto"], joules.get("bmm")
    others = [one for name in BASELINES if (one := joules.get(name)) is not None]
    return {
        "joules": dict(joules),
        "readable": "yes" if mine is not None else "not readable",
        "energy_over_bmm": None if mine is None or permuted is None else mine / permuted,
        "energy_over_best": None if mine is None or not others else mine / min(others),
    }


def energy_lines(rows: Rows) -> Iterator[str]:
    """Markdown: by dtype and layout how often the choice takes less energy, and the median ratio."""
    yield from ("### Energy", "")
    columns, lines = ("dtype", "layout", "over", "patterns", "below %", "median", "paper: below %, median"), []
    for (dtype, layout), group in by_dtype_and_layout(rows).items():
        for over, against in (("bmm", "bmm"), ("best", f"min({', '.join(BASELINES)})")):
            known = [row[f"energy_over_{over}"] for row in group]
            found = [one for one in known if one is not None]
            figures: tuple[object, ...] = (len(known), "not readable", "", "")
            if found:
                below = 100 * sum(one < 1 for one in found) / len(found)
                paper = f"{BELOW:.0f}, {PAPER_MEDIAN}" if over == "best" and dtype == "float32" else ""
                figures = (len(found), f"{below:.3g}", f"{median(found):.3g}", paper)
            lines.append((dtype, layout, against, *figures))
    yield from markdown_table(columns, lines).splitlines()
