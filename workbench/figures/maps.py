"""Where structured products win: a dot a pattern at density and size, coloured by its ratio to the best baseline."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

from .canvas import Drawn, axes, labelled, rows_of

SUITES = {"ks": "Kronecker-sparse", "blr": "block-low-rank"}


def patterns(results: Path, suite: str) -> list[tuple[float, float, float]]:
    """(density, size, ratio) of every row in float32 that has all three; a GPU's rows where there are any."""
    for device in ("cuda", "cpu"):
        found = [
            (row["figures"]["density"], row["figures"]["size"], row["figures"]["ratio"])
            for key, row in rows_of(results, f"{suite}-{device}").items()
            if "float32" in key.split() and all(row["figures"].get(name) for name in ("density", "size", "ratio"))
        ]
        if found:
            return found
    return []


def draw_map(suite: str, results: Path) -> Drawn | None:
    """The win map of a suite."""
    found = patterns(results, suite)
    if not found:
        return None
    figure, panel = axes()
    ratios = [ratio for *_, ratio in found]
    dots = panel.scatter(
        [density for density, *_ in found],
        [size for _, size, _ in found],
        c=ratios,
        cmap="PuOr_r",
        vmin=min(0.5, *ratios),
        vmax=max(1.5, *ratios),
        edgecolors="0.3",
        linewidths=0.5,
    )
    figure.colorbar(dots, ax=panel, label="best baseline's time / ours")
    for axis, scale in ((panel.xaxis, panel.set_xscale), (panel.yaxis, panel.set_yscale)):
        scale("log")
        axis.set_major_formatter(_power)
        axis.set_minor_formatter("")
    labelled(panel, "density", "size", f"{SUITES[suite].capitalize()} products")
    wins = sum(ratio > 1 for ratio in ratios)
    return Drawn(
        figure,
        f"Speed of {SUITES[suite]} products over the best baseline by density and size: {wins} of {len(found)} "
        "patterns are faster.",
    )


def _power(number: float, _: object) -> str:
    """A power of ten in type of one size."""
    return f"{number:g}" if 1e-3 <= number <= 1e3 else f"1e{round(math.log10(number))}"


draw_ks = partial(draw_map, "ks")
draw_blr = partial(draw_map, "blr")
