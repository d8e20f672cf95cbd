"""The demonstration: find, prove, keep, run, each step on real inputs."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable

import click
import numpy as np

from ..schemes_db import costs
from ..schemes_db.library import resolve
from ..schemes_db.shipped import shipped
from ..verify import check
from .progress import Progress
from .timing import gflops, interleaved, ratio_to, relative_error

SEARCHES = (("2x2x2", 7), ("3x3x3", 23))
CONTENDERS = (("strassen", 1), ("strassen", 2), ("winograd", 1), ("winograd", 2))
"""Schemes and levels that the product is tried with; the fastest of them is reported as such."""


def find_and_keep() -> None:
    """Rank 7 and rank 23 from the naive schemes, lifted to Z, certified and stored."""
    from ..search import find
    from .commands.search import keep

    for name, rank in SEARCHES:
        with Progress(f"searching {name} for rank {rank} (the first time, the walk is compiled)") as progress:
            result = find(name, rank=rank, seed=1, seconds=60, command=f"lcma search {name} --rank {rank} --seed 1",
                          on_progress=lambda now: progress.update(f"best rank {now.rank}, {now.flips / 1e6:.1f} M flips"))
        if not result.finds:
            raise RuntimeError(f"the search for {name} rank {rank} found nothing in {result.seconds:.0f} s")
        keep(result)
        scheme = result.finds[0].scheme
        click.echo(f"  {name}: from {len(scheme.target.terms)} products to {scheme.rank} in {result.flips} flips, lifted from "
                   f"Z2 to {scheme.ring}, certified ({scheme.target.equations} equations), kept as {scheme.digest[:12]}")


def prove() -> None:
    """Laderman's scheme and both stages of Exact Causal Attention, all equations and by random instances."""
    for name in ("laderman", "eca-stage1", "eca-stage2"):
        scheme = shipped(name).scheme
        outcomes = [check(scheme, method) for method in ("exact", "randomized")]
        if not all(outcome.ok for outcome in outcomes):
            raise RuntimeError(f"the shipped scheme {name} does not verify: {outcomes[0].explain()}")
        full, half = costs.full_and_half(scheme)
        cost = f", {full} full + {half} half, cost {costs.one_level_cost(scheme)}" if half else ""
        click.echo(f"  {name}: {scheme.target} rank {scheme.rank}: all {outcomes[0].equations} equations hold "
                   f"({1e3 * outcomes[0].seconds:.1f} ms), random instances agree{cost}")


def multiply(size: int, rounds: int) -> None:
    """A float32 product against numpy's BLAS, and against torch where it is installed."""
    from ..kernels import matmul

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    out = np.empty((size, size), dtype=np.float32)
    calls: dict[str, Callable[[], object]] = {"numpy": lambda: np.matmul(a, b, out=out)}
    if importlib.util.find_spec("torch"):
        import torch

        calls["torch"] = lambda: torch.matmul(torch.from_numpy(a), torch.from_numpy(b))
    results: dict[str, object] = {}
    for name, levels in CONTENDERS:
        label = f"{name}, {levels} level{'s' if levels > 1 else ''}"
        calls[label] = lambda pair=resolve(name), levels=levels, label=label: results.__setitem__(
            label, matmul(a, b, pair, levels))
    with Progress("compiling and warming up") as progress:
        timings = interleaved(calls, rounds, lambda number: progress.update(f"round {number} of {rounds}"))
    results["numpy"] = np.matmul(a, b)
    for name, timing in timings.items():
        ratio = ratio_to(timings["numpy"], timing)
        error = "" if name not in results else f", error {relative_error(np.asarray(results[name]), a, b):.1e}"
        click.echo(f"  {name:<20} {gflops(size, size, size, timing.median):7.1f} effective GFLOP/s, {ratio:.3f} of numpy{error}")
    best = max((name for name in timings if name in results and name != "numpy"),
               key=lambda name: ratio_to(timings["numpy"], timings[name]))
    click.echo(f"  best: {best}, {ratio_to(timings['numpy'], timings[best]):.3f} times numpy's speed "
               f"(interleaved medians of {rounds} rounds)")


def attend(length: int, width: int, rounds: int) -> None:
    """Mask(Q K^T) by stage I: 24 full and 10 half products of blocks in place of 40 (6 x 4 full, 4 x 4 half)."""
    from ..kernels import matmul

    rng = np.random.default_rng(1)
    q, k = (rng.standard_normal((length, width), dtype=np.float32) for _ in range(2))
    transposed = np.ascontiguousarray(k.T)
    pair = resolve("eca-stage1")
    results: dict[str, np.ndarray] = {}

    def strips(count: int = 8) -> None:
        scores = np.zeros((length, length), dtype=np.float32)
        for start in range(0, length, -(-length // count)):
            stop = min(start + -(-length // count), length)
            np.matmul(q[start:stop], transposed[:, :stop], out=scores[start:stop, :stop])
            scores[start:stop, start:stop] = np.tril(scores[start:stop, start:stop])
        results["row strips of numpy"] = scores

    calls: dict[str, Callable[[], object]] = {
        "numpy, full, then tril": lambda: results.__setitem__("numpy, full, then tril", np.tril(np.matmul(q, transposed))),
        "row strips of numpy": strips,
        "eca-stage1": lambda: results.__setitem__("eca-stage1", matmul(q, transposed, pair)),
    }
    with Progress("compiling and warming up"):
        timings = interleaved(calls, rounds)
    baseline = timings["numpy, full, then tril"]
    for name, timing in timings.items():
        error = relative_error(results[name], q, transposed, masked=True)
        click.echo(f"  {name:<24} {1e3 * timing.median:7.1f} ms, {ratio_to(baseline, timing):.3f} of the full product, error {error:.1e}")


def demo(size: int = 4096, rounds: int = 5) -> None:
    """All steps in order, with the time that each took."""
    began = time.perf_counter()
    steps: tuple[tuple[str, Callable[[], None]], ...] = (
        ("Find: flip walks from the naive schemes, lifted to the integers", find_and_keep),
        ("Prove: the shipped identities of Laderman and of Exact Causal Attention", prove),
        (f"Run: a {size} x {size} float32 product", lambda: multiply(size, rounds)),
        (f"Run: causal scores Mask(Q K^T), {size} x {size // 2}, by ECA stage I", lambda: attend(size, size // 2, rounds)),
    )
    for title, step in steps:
        start = time.perf_counter()
        click.echo(title)
        step()
        click.echo(f"  ({time.perf_counter() - start:.1f} s)")
    click.echo(f"All of it in {time.perf_counter() - began:.1f} s. `lcma list` shows what is kept.")


