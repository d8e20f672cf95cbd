"""Suite "cpu": squares and rectangles on a processor, the planner's choice against the best library."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..case import Bar, Case, Figures, Options, Say, Suite
from ..contest import Sizes, compete, libraries, limited, operands
from ..picture import ratios


@dataclass(frozen=True)
class Product:
    """A row and the ratio it must reach."""

    dtype: str
    sizes: Sizes
    threads: int
    bar: float | None = None

    @property
    def key(self) -> str:
        m, k, n = self.sizes
        size = f"{m}" if m == k == n else f"{m}x{k}x{n}"
        return f"{self.dtype} {size} {self.threads}T"

    @property
    def seconds(self) -> float:
        m, k, n = self.sizes
        return 5 + 2 * m * k * n * 20 / (1e11 * self.threads)


def _square(size: int) -> Sizes:
    return size, size, size


PRODUCTS = (
    Product("float32", _square(2048), 2, 1.08),
    Product("float32", _square(4096), 2, 1.20),
    Product("float32", _square(8192), 2, 1.33),
    Product("float32", _square(2048), 1, 1.17),
    Product("float32", _square(4096), 1, 1.28),
    Product("float32", _square(8192), 1, 1.40),
    Product("float32", (2048, 4096, 11008), 2, 1.19),
    Product("float32", (2048, 4096, 4096), 2),
    Product("float32", _square(3000), 2),
    Product("float64", _square(4096), 2, 1.18),
    Product("float64", _square(8192), 2, 1.25),
    Product("float64", _square(2048), 2),
)

SHARES = (1 / 6, 1 / 3, 1.0, 3.0)
"""Workspace as a part of what A, B and C take."""


def _cases(options: Options) -> Iterator[Case]:
    rounds = options.rounds or 7
    for product in PRODUCTS:
        if options.dtypes and product.dtype not in options.dtypes:
            continue
        if options.threads and product.threads not in options.threads:
            continue
        bars = () if product.bar is None else (Bar("ratio", product.bar),)
        yield Case(product.key, partial(_product, product, rounds, options.seed), product.seconds, bars)
    for share in (0.0, *SHARES):
        yield Case(f"workspace {share:.3g} float32 4096", partial(_workspace, share, rounds, options.seed), 20)
    yield Case("small overhead", _overhead, 5, (Bar("microseconds", 3.0, at_most=True),))
    yield Case("planning", _planning, 5, (Bar("warm_us", 20.0, True), Bar("cold_ms", 2.0, True)))
    yield Case("rivals float32 4096", partial(_rivals, 4096, rounds, options.seed), 60)


def _product(product: Product, rounds: int, seed: int, say: Say) -> Figures:
    from ....kernels import matmul, plan_for
    from ....kernels.request import Request

    a, b = operands(product.sizes, product.dtype, seed)
    out = np.empty((product.sizes[0], product.sizes[2]), product.dtype)
    with limited(product.threads):
        plan = plan_for(Request.of(a, b, out))
        say(f"{plan.candidate}")
        figures = compete(a, b, libraries(a, b, product.threads), {"auto": lambda: matmul(a, b, out=out)}, rounds)
    return {**figures, "plan": str(plan.candidate), "predicted_s": plan.seconds}


def _workspace(share: float, rounds: int, seed: int, say: Say) -> Figures:
    """The fastest plan within a share of the operands' memory, and what it really took."""
    from ....kernels import Pool, plan_for
    from ....kernels.request import Request

    a, b = operands(_square(4096), "float32", seed)
    allowed = int(share * 3 * a.nbytes)
    plan = plan_for(Request.of(a, b, max_workspace=allowed))
    pool, out = Pool(), np.empty_like(a)
    executor = plan.build(pool)
    figures = compete(a, b, libraries(a, b, 2), {"ours": lambda: executor.run(a, b, out)}, max(3, rounds // 2))
    return {**figures, "plan": str(plan.candidate), "allowed_bytes": allowed, "taken_bytes": pool.high_water}


def _overhead(say: Say) -> Figures:
    """What a small product costs beyond numpy's call, in microseconds; the least of many turns of each."""
    from ....kernels import matmul

    a = np.ones((8, 8), np.float32)
    ours, numpys = (_least(partial(call, a, a)) for call in (matmul, np.matmul))
    return {"microseconds": 1e6 * (ours - numpys)}


def _planning(say: Say) -> Figures:
    """Seconds of choosing: for a size that was met before, and for a new one."""
    import time

    from ....kernels import executor_for
    from ....kernels.cpu.estimate import profile_for
    from ....kernels.cpu.threads import thread_count
    from ....kernels.decide import choices
    from ....kernels.decide.options import options as enumerate_options
    from ....kernels.request import Request

    request = Request(3000, 3000, 3000)
    executor_for(request)
    warm = _least(partial(executor_for, request))
    profile, among, threads = profile_for(request), choices(), thread_count()
    cold = []
    for size in range(3001, 3030):
        start = time.perf_counter()
        enumerate_options(Request(size, size, size), profile, among, threads)
        cold.append(time.perf_counter() - start)
    return {"warm_us": 1e6 * warm, "cold_ms": 1e3 * float(np.median(cold))}


def _least(call: Any, turns: int = 200, times: int = 50) -> float:
    import timeit

    return min(timeit.repeat(call, number=times, repeat=turns)) / times


def _rivals(size: int, rounds: int, seed: int, say: Say) -> Figures:
    """Two usual ways to run a scheme beside ours: its formula under torch.compile, and a task a product."""
    from ....kernels import matmul
    from ....schemes_db.library import resolve
    from ..rivals import compiled_formula, tasks_adding

    a, b = operands(_square(size), "float32", seed)
    out = np.empty_like(a)
    scheme = resolve("strassen")[0]
    ours = {"auto": lambda: matmul(a, b, out=out), "R tasks adding into C": tasks_adding(scheme, a, b)}
    if compiled := compiled_formula(scheme, a, b, say):
        ours["formula under torch.compile"] = compiled
    return compete(a, b, libraries(a, b, 2), ours, max(3, rounds // 2))


SUITE = Suite(
    "cpu",
    "squares and rectangles on the processor, the planner's choice against numpy and torch",
    _cases,
    ("plan", "best_library", "ratio", "interval"),
    ("kernels",),
    ratios,
)
