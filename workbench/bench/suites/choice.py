"""Suite "choice": the planner's choice against the best of many candidates that were measured, over 36 shapes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice, product

from ....errors import PlanError
from ....kernels import Request, decision_for, plan_for
from ..case import Case, Figures, Options, Say, barred
from ..contest import Call
from ..cpu_products import Sizes, compete, libraries, operands, proposed_plans

GRID = (1024, 2048, 4096)

CUBES = (768, 1280, 1536, 2560, 3000, 3456, 3840, 5000, 5120)

NAMED = (["strassen"], ["4x4x4-r49"], ["strassen", "4x4x4-r49"], ["laderman"], ["4x4x5-r63"], ["5x5x5-r93"])
"""Schemes by level that are measured whatever the model thinks of them."""

BEST = 6
"""Candidates that the model thinks best which are measured."""

VENDOR = "vendor"
"""The planner's name of the library's own product."""


@barred
def cases(options: Options) -> Iterator[Case]:
    shapes: list[Sizes] = [*((size, size, size) for size in CUBES), *product(GRID, GRID, GRID)]
    for m, k, n in shapes:
        one = 1e-11 * m * k * n
        rounds = options.rounds or max(3, min(9, int(8 / (13 * one))))
        yield Case(f"{m}x{k}x{n}", partial(_shape, (m, k, n), rounds, options.seed))


def _shape(sizes: Sizes, rounds: int, seed: int, say: Say) -> Figures:
    """Return the loss of the choice against the best of all, by medians of interleaved rounds."""
    a, b, out = operands(sizes, "float32", seed)
    request = Request.of(a, b, out)
    decision, base = decision_for(request), libraries(a, b)
    plans = list(islice(proposed_plans(decision, lambda candidate: candidate.source is not None), BEST))
    for scheme in NAMED:
        try:
            plans.append(plan_for(request, scheme))
        except PlanError as error:
            say(str(error))
    calls: dict[str, Call] = {}
    for plan in plans:
        calls.setdefault(str(plan.candidate), partial(plan.build().run, a, b, out))
    chosen = str(decision.plan.candidate)
    say(chosen)
    figures = compete(a, b, base, calls, rounds)
    best = max(1.0, *figures["ratios"].values())
    mine = figures["ratios"].get(chosen, 1.0)
    fastest = max(figures["ratios"], key=figures["ratios"].__getitem__) if best > 1 else VENDOR
    kept = {key: figures[key] for key in ("gflops", "quartiles_s", "ratios", "best_library")}
    return {**kept, "plan": chosen, "fastest": fastest, "ratio": mine, "best_ratio": best, "loss": best / mine - 1}
