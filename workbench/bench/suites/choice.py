"""Suite "choice": the planner's choice against the best of many candidates that were measured, over 36 shapes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice, product

from ....errors import PlanError
from ..case import Bar, Case, Figures, Options, Say, Suite
from ..cpu_products import Sizes, compete, decided, libraries, named_call, operands, proposed_calls

GRID = (1024, 2048, 4096)

CUBES = (768, 1280, 1536, 2560, 3000, 3456, 3840, 5000, 5120)

NAMED = {
    "222": ["strassen"],
    "444": ["4x4x4-r49"],
    "888": ["strassen", "4x4x4-r49"],
    "333": ["laderman"],
    "445": ["4x4x5-r63"],
    "555": ["5x5x5-r93"],
}

BEST = 6
"""Candidates that the model thinks best which are measured."""

VENDOR = "vendor"
"""The planner's name of the library's own product."""

WORST = 0.06
"""The bar of the loss of the choice against the best measured candidate."""


def _cases(options: Options) -> Iterator[Case]:
    shapes: list[Sizes] = [*((size, size, size) for size in CUBES), *product(GRID, GRID, GRID)]
    for m, k, n in shapes:
        one = 1e-11 * m * k * n
        rounds = options.rounds or max(3, min(9, int(8 / (13 * one))))
        seconds = 10 + 14 * one * (rounds + 2)
        bars = (Bar("loss", WORST, at_most=True),)
        yield Case(f"{m}x{k}x{n}", partial(_shape, (m, k, n), rounds, options.seed), seconds, bars)


def _shape(sizes: Sizes, rounds: int, seed: int, say: Say) -> Figures:
    """Return the loss of the choice against the best of all, by medians of interleaved rounds."""
    a, b, out = operands(sizes, "float32", seed)
    decision = decided(a, b, out)
    base = libraries(a, b)
    calls = dict(islice(proposed_calls(decision, a, b, out), BEST))
    for scheme in NAMED.values():
        try:
            label, call = named_call(scheme, a, b, out)
        except PlanError as error:
            say(str(error))
        else:
            calls.setdefault(label, call)
    chosen = str(decision.plan.candidate)
    say(chosen)
    figures = compete(a, b, base, calls, rounds)
    best = max(1.0, *figures["ratios"].values())
    mine = figures["ratios"].get(chosen, 1.0)
    fastest = max(figures["ratios"], key=figures["ratios"].__getitem__) if best > 1 else VENDOR
    kept = {key: figures[key] for key in ("gflops", "quartiles_s", "ratios", "best_library")}
    return {**kept, "plan": chosen, "fastest": fastest, "ratio": mine, "best_ratio": best, "loss": best / mine - 1}


SUITE = Suite(
    "choice",
    "the planner's choice on a processor against the best of a dozen measured candidates, 36 shapes",
    _cases,
    ("plan", "fastest", "ratio", "best_ratio", "loss"),
)
