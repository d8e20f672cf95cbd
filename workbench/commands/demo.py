"""`lcma demo`"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from xml.sax.saxutils import escape

import click
import numpy as np

from ...home import data_folder
from ...kernels import matmul, plan_for
from ...kernels.cpu.bench import BUSY_SHARE, CpuLoadMonitor
from ...schemes_db import costs
from ...schemes_db.resolve import resolve
from ...schemes_db.shipped import shipped
from ...search import find
from ...search.runs.keep import keep
from ...verify import check
from ..bench.contest import Call, Calls, Contest, Timings, Truth, ratio_to, within
from ..bench.cpu_products import libraries
from ..bench.table import LIMITS
from ..destination import write
from ..help import lcma_command
from ..options import option
from ..output import print_json, wants_json
from ..products import Device, gflops, sized_request
from ..progress import Progress


@lcma_command
def command(
    *,
    size: int = option(type=click.IntRange(64, 1 << 15), default=4096),
    rounds: int = option(type=click.IntRange(1, 100), default=3),
) -> None:
    if not wants_json():
        demo(size, rounds)
        return
    with contextlib.redirect_stdout(sys.stderr):
        found = demo(size, rounds)
    print_json(found)


SEARCHES = (("2x2x2", 7), ("3x3x3", 23))
CONTENDERS = (("strassen", 1), ("strassen", 2))
"""Schemes and levels that products are tried with."""

LIMIT = 60.0
"""Seconds that the demonstration may take; what would take longer is left out, and that is said."""

GROWTH, UNTIMED = 8.0, 4
"""The seconds of a product of twice the side over those of it; what checking and warming up takes, in rounds."""

GAIN = 1.02
"""A scheme gains where it is at least as many times as fast as the fastest library: less is scatter."""


def find_and_keep() -> None:
    """Rank 7 and rank 23 from the naive schemes, lifted to Z, certified and stored."""
    for name, rank in SEARCHES:
        with Progress(f"searching {name} for rank {rank} (the first time, the walk is compiled)") as progress:
            result = find(
                name,
                rank=rank,
                seed=1,
                seconds=60,
                command=f"lcma search {name} --rank {rank} --seed 1",
                on_event=lambda now: progress.update(f"best rank {now.rank}, {now.flips / 1e6:.1f} M flips"),
            )
        if not result.finds:
            raise RuntimeError(f"the search for {name} rank {rank} found nothing in {result.seconds:.0f} s")
        said = keep(result)[0]
        scheme = result.finds[0].scheme
        click.echo(
            f"  {name}: from {len(scheme.target.terms)} products to {scheme.rank} in {result.flips} flips, lifted from "
            f"Z2 to {scheme.ring}, certified ({scheme.target.equations} equations): {scheme.digest[:12]}, {said}"
        )


def prove() -> None:
    """Laderman's scheme and both stages of Exact Causal Attention, all equations and by random instances."""
    for name in ("laderman", "eca-stage1", "eca-stage2"):
        scheme = shipped(name).scheme
        outcomes = [check(scheme, method) for method in ("exact", "randomized")]
        if not all(outcome.ok for outcome in outcomes):
            raise RuntimeError(f"the shipped scheme {name} does not verify: {outcomes[0].explain()}")
        full, half = costs.full_and_half(scheme)
        cost = f", {full} full + {half} half, cost {costs.one_level_cost(scheme)}" if half else ""
        click.echo(
            f"  {name}: {scheme.target} rank {scheme.rank}: all {outcomes[0].equations} equations hold "
            f"({1e3 * outcomes[0].seconds:.1f} ms), random instances agree{cost}"
        )


NEXT = (
    ("verify a file", "lcma show eca-stage1 > eca.txt && lcma verify eca.txt"),
    ("find a scheme", "lcma search 4x4x4:tri-out --rank 34 --seed 1"),
    ("run a product", "lcma time auto 4096"),
)
"""Commands to try after the demonstration, one for each kind of user."""


def multiply(size: int, rounds: int, ends: float) -> Panel:
    """Time float32 products of three sizes, up to `size`, against the fastest library; returns the speeds of the last.

    A product that would end later than `ends` (of `time.perf_counter`) is left out.
    """
    fastest: list[tuple[int, str, float]] = []
    panel: Panel = ("", {})
    monitor, spent = CpuLoadMonitor(), 0.0
    for side in dict.fromkeys(max(64, size // part) for part in (4, 2, 1)):
        if fastest and time.perf_counter() + GROWTH * spent > ends:
            click.echo(f"  {side} x {side} is left out: it would take more than a minute")
            break
        a, b = np.random.default_rng(0).standard_normal((2, side, side), dtype=np.float32)
        base, schemes = libraries(a, b), dict[str, Call]()
        for name, levels in CONTENDERS:
            label = f"{name}, {levels} level{'s' if levels > 1 else ''}"
            schemes[label] = partial(matmul, a, b, resolve(name), levels, out=np.empty_like(a))
        click.echo(f"  {side} x {side}:")
        timings = _timed({**base, **schemes}, rounds, Truth(a, b), "numpy", side)
        spent = (rounds + UNTIMED) * sum(timing.median for timing in timings.values())
        baseline = timings.fastest(base)
        best = timings.fastest(schemes)
        fastest.append((side, best.name, ratio_to(baseline, best)))
        panel = (f"{side} x {side} float32 product: speed over {baseline.name}", timings.ratios(baseline))
    click.echo(f"  {break_even(fastest)}")
    if (share := monitor.share()) > BUSY_SHARE:
        click.echo(f"  (others kept {share:.0%} of the processors busy meanwhile: repeat this on a quiet machine)")
    return panel


def break_even(fastest: list[tuple[int, str, float]]) -> str:
    """Say from which size on schemes gain, by the speeds of the fastest ones over the library's, by increasing size."""
    side, name, ratio = fastest[-1]
    if ratio < GAIN:
        return (
            f"no scheme gains at {side} on this machine: the fastest, {name}, has {ratio:.2f} times the library's "
            f"speed; the break-even is above {side} rows, below which `lcma.matmul` runs the library's product"
        )
    said = f"{name} gains at {side}: {ratio:.2f} times the library's speed; "
    losing = [place for place, (_, _, each) in enumerate(fastest) if each < GAIN]
    if not losing:
        return f"{said}the break-even is below {fastest[0][0]} rows on this machine"
    (low, _, below), (high, _, above) = fastest[losing[-1]], fastest[losing[-1] + 1]
    share = (GAIN - below) / (above - below)
    return f"{said}the break-even is at about {low * (high / low) ** share:.0f} rows on this machine"


def attend(length: int, width: int, rounds: int) -> Panel:
    """Mask(Q K^T) by stage I: 24 full and 10 half products of blocks in place of 24 and 16; speeds for the picture."""
    rng = np.random.default_rng(1)
    q, k = (rng.standard_normal((length, width), dtype=np.float32) for _ in range(2))
    transposed = np.ascontiguousarray(k.T)
    strips = plan_for(sized_request((length, width, length), "float32", Device("cpu"), "QK"), strategy="strips").build()
    calls: Calls = {
        "numpy, full, then tril": lambda: np.tril(np.matmul(q, transposed)),
        "strips of rows": partial(strips.run, q, k.T),
        "eca-stage1": partial(matmul, q, transposed, resolve("eca-stage1")),
    }
    baseline = "numpy, full, then tril"
    timings = _timed(calls, rounds, Truth(q, transposed, masked=True), baseline)
    return f"causal scores, {length} x {width}: speed over the full product", timings.ratios(timings[baseline])


def _timed(calls: Calls, rounds: int, truth: Truth, baseline: str, side: int = 0) -> Timings:
    """Check every contender, then time all of them in turns, and print a line for each; `side` is that of squares."""
    judge = within(truth.error, LIMITS["product of a library"]["float32"], "relative error")
    with Progress("compiling and checking") as progress:
        timings = Contest(calls, rounds, say=progress.update, judge=judge).run()
    for name, timing in timings.items():
        rate = f"{gflops(side, side, side, timing.median):7.1f} GFLOP/s" if side else f"{1e3 * timing.median:7.1f} ms"
        click.echo(
            f"  {name:<24}{rate}, {ratio_to(timings[baseline], timing):.3f} times the first, "
            f"error {timings.errors[name]:.1e}"
        )
    return timings


def demo(size: int = 4096, rounds: int = 3) -> dict[str, Any]:
    """All steps in order, with the time that each took; returns the times, the speeds and the picture's path."""
    began = time.perf_counter()
    steps: tuple[tuple[str, Callable[[], Panel | None]], ...] = (
        ("Find: flip walks from the naive schemes, lifted to the integers", find_and_keep),
        ("Prove: the shipped identities of Laderman and of Exact Causal Attention", prove),
        (f"Run: float32 products up to {size} x {size}", lambda: multiply(size, rounds, began + LIMIT)),
        (
            f"Run: causal scores Mask(Q K^T), {size // 2} x {size // 4}, by ECA stage I",
            lambda: attend(size // 2, size // 4, rounds),
        ),
    )
    panels: list[Panel] = []
    seconds = {}
    for title, step in steps:
        start = time.perf_counter()
        click.echo(title)
        if panel := step():
            panels.append(panel)
        seconds[title] = time.perf_counter() - start
        click.echo(f"  ({seconds[title]:.1f} s)")
    click.echo(f"All of it in {time.perf_counter() - began:.1f} s. `lcma list` shows what is stored.")
    picture = data_folder() / "demo.svg"
    write(picture, draw(panels))
    click.echo(f"The speeds as a picture: {picture}")
    click.echo("Next, try:")
    for what, line in NEXT:
        click.echo(f"  {what + ':':<16}{line}")
    return {"seconds": seconds, "speeds": dict(panels), "picture": str(picture)}


WIDTH, ROW, LEFT, RIGHT = 640, 30, 210, 60
"""Pixels: of the picture, of a bar's row, of the labels and of the numbers."""

Panel = tuple[str, Mapping[str, float]]
"""A title, and by contender how many times as fast as the first it is."""


def draw(panels: Sequence[Panel]) -> str:
    """The panels below each other, a bar a contender, a line at 1."""
    longest = max(1.0, *(ratio for _, bars in panels for ratio in bars.values()))
    scale = (WIDTH - LEFT - RIGHT) / longest
    parts, y = [], 10
    for title, bars in panels:
        y += ROW
        parts.append(f'<text x="10" y="{y - 10}" font-weight="bold">{escape(title)}</text>')
        top = y
        for name, ratio in bars.items():
            fill = "#0b5f66" if ratio >= 1 else "#9aa5ab"
            parts.append(f'<text x="{LEFT - 10}" y="{y + 18}" text-anchor="end">{escape(name)}</text>')
            parts.append(f'<rect x="{LEFT}" y="{y + 4}" width="{scale * ratio:.1f}" height="{ROW - 8}" fill="{fill}"/>')
            parts.append(f'<text x="{LEFT + scale * ratio + 6:.1f}" y="{y + 18}">{ratio:.2f}</text>')
            y += ROW
        line = LEFT + scale
        parts.append(f'<path d="M{line:.1f} {top}V{y}" stroke="#c2410c" stroke-dasharray="4 3"/>')
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 20}" width="{WIDTH}" height="{y + 20}" '
        f'font-family="sans-serif" font-size="14">\n<title>Measured speed over the first contender</title>\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
    )
