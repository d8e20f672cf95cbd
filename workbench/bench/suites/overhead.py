"""Suite "overhead": what `auto` costs beside the product: a small call, plans warm and cold, a launch on a GPU."""

from __future__ import annotations

import timeit
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from ....errors import VerificationError
from ....kernels import Request, decision_for, executor_for, machine_for, matmul, strategies
from ....kernels.cuda.clock import settled
from ....kernels.planning.planner import decide
from ..case import Bar, Case, Figures, Options, Say, Suite, code_of, cube
from ..gpu_products import ahead, graphed, operands
from ..requirements import in_new_process

NEW_SIZES = (*range(2500, 3500, 50), *range(4000, 9000, 250))
"""Squares that are planned cold."""

SMALL = cube(64)

TWO = "strassen/strassen"

MET = 3000
"""The square that is planned warm."""

FIRST_PLAN = """
import json, time
import lcma.kernels.api, lcma.kernels.dense, lcma.kernels.cpu, lcma.kernels.cuda, lcma.verify.program
import lcma.schemes_db.catalog, threadpoolctl
from lcma.kernels import Request, decision_for
start = time.perf_counter()
decision_for(Request(4096, 4096, 4096))
print(json.dumps(time.perf_counter() - start))
"""


def _cases(options: Options) -> Iterator[Case]:
    device = options.device
    if device == "cpu":
        yield Case("small call", _small_call, 5, (Bar("us", 0.4, at_most=True),))
        yield Case("first plan of a process", _first_plan, 15)
    else:
        sums = partial(ahead, TWO, "float32", SMALL)
        yield Case("launch", partial(_launch, options.seed), 5, (Bar("us", 8.0, at_most=True),), sums)
    warm, cold = Bar("us", 4.0, at_most=True), Bar("ms", 2.0, at_most=True)
    yield Case("warm plan", partial(_warm_plan, device), 5, (warm,) if device == "cpu" else ())
    yield Case("cold plan", partial(_cold_plan, device), 10, (cold,) if device == "cpu" else ())
    yield Case("plan counts", partial(_counts, device), 10)


def _small_call(say: Say) -> Figures:
    """Microseconds that a product of 8 x 8 matrices costs beyond numpy's call."""
    a = np.ones((8, 8), np.float32)
    ours, numpys = (_least(partial(call, a, a)) for call in (matmul, np.matmul))
    return {"us": 1e6 * (ours - numpys), "numpy_us": 1e6 * numpys}


def _launch(seed: int, say: Say) -> Figures:
    """Microseconds added to torch's product of 64 x 64 matrices: by `auto`, and by two levels in three stages.

    "graph" is what the three stages add where both are replayed from CUDA graphs.
    """
    import torch

    from ....kernels.torch.ops import bilinear_mm, matmul

    a, b = operands("float32", SMALL, seed)
    vendor, auto, stages = (
        settled(call) for call in (lambda: a @ b, lambda: matmul(a, b), lambda: bilinear_mm(a, b, TWO))
    )
    replayed = [settled(graphed(partial(call, a, b))) for call in (torch.matmul, partial(bilinear_mm, recipe=TWO))]
    return {
        "us": 1e6 * (auto - vendor),
        "stages_us": 1e6 * (stages - vendor),
        "graph_us": 1e6 * (replayed[1] - replayed[0]),
        "vendor_us": 1e6 * vendor,
    }


def _warm_plan(device: str, say: Say) -> Figures:
    """Microseconds to find the executor of a size that was met before."""
    request = _square(MET, device)
    executor_for(request)
    return {"us": 1e6 * _least(partial(executor_for, request))}


def _cold_plan(device: str, say: Say) -> Figures:
    """Milliseconds to plan a new size: the median and the most of 40 squares, in a process that has planned before."""
    machine = machine_for(_square(MET, device))
    decision_for(_square(MET, device), machine=machine)
    seconds = []
    for size in NEW_SIZES:
        start = perf_counter()
        decision_for(_square(size, device), machine=machine)
        seconds.append(perf_counter() - start)
    return {"ms": 1e3 * median(seconds), "most_ms": 1e3 * max(seconds)}


def _first_plan(say: Say) -> Figures:
    """Milliseconds of the first plan in a process, imports apart; the least of three processes."""
    return {"ms": 1e3 * min(in_new_process(FIRST_PLAN) for _ in range(3))}


def _counts(device: str, say: Say) -> Figures:
    """Return how many candidates are proposed for the squares planned cold, how often a strategy prices one, and
    how many are refused: medians."""
    machine = machine_for(_square(MET, device))
    counted: dict[Any, Any] = {key: _Counting(strategy) for key, strategy in strategies(device).items()}
    proposed, priced, refused, chosen = [], [], [], 0
    for size in NEW_SIZES:
        request = _square(size, device)
        before = sum(one.predicted for one in counted.values())
        decision = decide(request, machine, counted)
        priced.append(sum(one.predicted for one in counted.values()) - before)
        proposed.append(len(decision.proposals))
        refused.append(len(decision.refused))
        chosen += not decision.is_baseline
        if decision.plan.candidate != decision_for(request, machine=machine).plan.candidate:
            raise VerificationError(f"{request} is planned differently while candidates are counted")
    return {
        "proposed": median(proposed),
        "priced": median(priced),
        "most_priced": max(priced),
        "refused": median(refused),
        "by_scheme": chosen,
        "plans": len(NEW_SIZES),
    }


class _Counting:
    """A strategy that counts how often it prices a candidate."""

    def __init__(self, strategy: object) -> None:
        self._strategy = strategy
        self.predicted = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._strategy, name)

    def predict(self, *arguments: object) -> object:
        """Price as the strategy does, and count the call."""
        self.predicted += 1
        return self._strategy.predict(*arguments)  # type: ignore[attr-defined]


def _square(size: int, device: str) -> Request:
    return Request(size, size, size, device=device)


def _least(call: Callable[[], object], turns: int = 200, times: int = 50) -> float:
    """Seconds of a call: the least mean of many turns."""
    return min(timeit.repeat(call, number=times, repeat=turns)) / times


SUITE = Suite(
    "overhead",
    "what `auto` costs beside the product: a small call, plans warm and cold, a launch on a GPU",
    _cases,
    ("us", "ms", "most_ms", "proposed", "priced", "refused"),
    code_of("gpu_products"),
)
