"""Suite "cpu": products on a processor, the planner's choice against the best library; limits, first calls, plans."""

from __future__ import annotations

import json
import math
import os
import statistics
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from ....kernels import Pool, Request, decision_for, executor_for, machine_for, matmul, plan_for
from ....kernels.cpu.blas import TORCH, backends
from ...cpu_profile import limited
from ..case import Case, Figures, Options, Say, at_least, barred, cube, shown
from ..cpu_products import compete, libraries, operands
from ..requirements import in_new_process
from ..table import rows

PAIRS = 15
"""Interleaved rounds where a bar is on the interval; and of products that take less than a second."""

FEW = 5
"""Rounds of the largest products."""

TRIAL = 3
"""Rounds by which the best library is found."""


PRODUCTS = rows("cpu")
"""Products and the ratio they must reach, or the `least` of its interval: `auto` must not lose around the sizes where
schemes begin to pay, nor where products are thin."""

SHARES = (0.0, 1 / 6, 1 / 3, 1.0, 3.0)
"""Workspace as a part of what A, B and C take."""


@barred
def cases(options: Options) -> Iterator[Case]:
    dtypes = options.dtypes or ("float32", "float64")
    for product in PRODUCTS:
        if product.dtype in dtypes:
            seconds = 2e-11 * math.prod(product.sizes) / product.threads * (2 if product.dtype == "float64" else 1)
            rounds = options.rounds or (PAIRS if seconds < 2 else FEW)  # of one product by a library, about
            run = partial(_product, product, rounds, options.seed)
            auto = "" if product.least is None else "auto "
            key = f"{auto}{product.dtype} {shown(product.sizes)} {product.threads}T"
            yield Case(key, run, at_least(ratio=product.bar, least=product.least))
    if "float32" in dtypes:
        few = options.rounds or FEW
        for share in SHARES:
            yield Case(f"workspace {share:.3g} float32 4096", partial(_workspace, share, few, options.seed))
        yield Case("first calls", _first_calls)
        yield Case("small overhead", _small_overhead)
        yield Case("planning", _planning)


def _product(product: Any, rounds: int, seed: int, say: Say) -> Figures:
    a, b, out = operands(product.sizes, product.dtype, seed)
    with limited(product.threads):
        decision = decision_for(Request.of(a, b, out))
        say(f"{decision.plan.candidate}")
        every = libraries(a, b, out)
        speeds = {name: compete(a, b, {name: call}, {}, TRIAL)["gflops"][name] for name, call in every.items()}
        best = max(speeds, key=speeds.__getitem__)
        # Only two take turns, and both write one C: where a matrix lies changes a product by some percent.
        figures = compete(a, b, {best: every[best]}, {"auto": lambda: matmul(a, b, out=out)}, rounds)
        same = _library_called(a, b, out) == best
    return {
        **figures,
        "libraries_gflops": speeds,
        "plan": str(decision.plan.candidate),
        "predicted": decision.gain,
        # The same call cannot lose: what its pairs differ by is what the machine did meanwhile.
        "least": 1.0 if same else figures["interval"][0],
        "same_call": same,
    }


def _library_called(a: Any, b: Any, out: Any) -> str | None:
    """The library whose own product `auto` is for these operands, whole and once; None where it is anything else."""
    places: dict[str, tuple[Any, str]] = {"numpy": (np, "matmul")}
    if TORCH in backends():
        import torch

        places["torch"] = torch, "mm"
    for library, (module, name) in places.items():
        with patch.object(module, name, wraps=getattr(module, name)) as called:
            matmul(a, b, out=out)
        shapes = [tuple(operand.shape) for call in called.call_args_list for operand in call.args[:2]]
        if shapes == [a.shape, b.shape]:
            return library
    return None


def _workspace(share: float, rounds: int, seed: int, say: Say) -> Figures:
    """The fastest plan within a share of the operands' memory, and what it really took."""
    a, b, out = operands(cube(4096), "float32", seed)
    allowed = int(share * 3 * a.nbytes)
    plan = plan_for(Request.of(a, b, max_workspace=allowed))
    say(str(plan.candidate))
    pool = Pool()
    executor = replace(plan, machine=replace(plan.machine, pool=pool)).build()
    figures = compete(a, b, libraries(a, b), {"ours": lambda: executor.run(a, b, out)}, rounds)
    taken = {"allowed_bytes": allowed, "taken_bytes": pool.high_water, "taken_share": pool.high_water / max(allowed, 1)}
    return {**figures, "plan": str(plan.candidate), **taken}


FIRST = """
import json, sys, time
import numpy as np
import lcma.kernels.api, lcma.kernels.dense, lcma.kernels.cpu, lcma.kernels.cuda, lcma.kernels.codegen.modules
import lcma.schemes_db.catalog, lcma.verify
from lcma.jit import njit
from lcma import matmul
a = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32)
seconds = {}
for scheme in ("strassen", "4x4x4-r49"):
    start = time.perf_counter()
    matmul(a, a, scheme)
    seconds[scheme] = time.perf_counter() - start
print(json.dumps(seconds))
"""


def _first_calls(say: Say) -> Figures:
    """Seconds of the first product by 2x2x2 and by 4x4x4 in a home with nothing in it; and in the next processes."""
    with tempfile.TemporaryDirectory() as home:
        first, *others = (
            json.loads(in_new_process(["-c", FIRST], {**os.environ, "LCMA_HOME": home})) for _ in range(4)
        )
        later = min(others, key=lambda found: max(found.values()))
    return {"compile_s": sum(first.values()), "first_s": first, "later_s": max(later.values()), "later": later}


NEW_SIZES = (*range(2500, 3500, 50), *range(4000, 9000, 250))
"""Squares that are planned cold."""

FIRST_PLAN = """
import json, time
import lcma.kernels.api, lcma.kernels.dense, lcma.kernels.cpu, lcma.kernels.cuda, lcma.verify.program
import lcma.schemes_db.catalog, threadpoolctl
from lcma.kernels import Request, decision_for
start = time.perf_counter()
decision_for(Request(4096, 4096, 4096))
print(json.dumps(time.perf_counter() - start))
"""


def _small_overhead(say: Say) -> Figures:
    """Microseconds that a product of 8 x 8 matrices costs beyond numpy's call."""
    a = np.ones((8, 8), np.float32)
    ours, numpys = (_least(partial(call, a, a)) for call in (matmul, np.matmul))
    return {"microseconds": 1e6 * (ours - numpys), "numpy_us": 1e6 * numpys}


def _planning(say: Say) -> Figures:
    """Times to find the executor of a size that was met before, to plan a new one (the median and the most of 40
    squares, in a process that has planned before), and of the first plan of a process (the least of three)."""
    request = Request(*cube(3000))
    executor_for(request)
    warm = _least(partial(executor_for, request))
    say("new sizes")
    cold = []
    for size in NEW_SIZES:
        start = time.perf_counter()
        decision_for(Request(*cube(size)), machine=machine_for(request))
        cold.append(time.perf_counter() - start)
    say("new processes")
    first = min(float(in_new_process(["-c", FIRST_PLAN])) for _ in range(3))
    milliseconds = {"cold_ms": statistics.median(cold), "worst_ms": max(cold), "first_of_a_process_ms": first}
    return {"warm_us": 1e6 * warm, **{name: 1e3 * seconds for name, seconds in milliseconds.items()}}


def _least(call: Callable[[], object], turns: int = 200, times: int = 50) -> float:
    """Seconds of a call: the least mean of many turns."""
    return min(timeit.repeat(call, number=times, repeat=turns)) / times
