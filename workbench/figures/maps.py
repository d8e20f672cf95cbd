"""Win maps of structured products: a dot for each product, coloured by its ratio to the baseline."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from .canvas import MARKERS, Drawn, axes, drawn, rows_of

KINDS = {"low-rank": 0.8, "monarch": 1.0, "blast": 1.25}
"""Kinds of block low-rank matrices, and the factor by which their dots stand beside the number of inputs."""


def patterns(results: Path) -> list[tuple[float, float, float]]:
    """(density, size, ratio) of every row of `ks` in float32 that has all three; a GPU's rows where there are any."""
    for device in ("cuda", "cpu"):
        some = [row["figures"] for key, row in rows_of(results, f"ks-{device}").items() if "float32" in key.split()]
        rows = [(one.get("density"), one.get("size"), one.get("ratio")) for one in some]
        if found := [row for row in rows if all(row)]:
            return found
    return []


def layers(results: Path) -> list[tuple[str, int, int, float]]:
    """(kind, inputs at once, elements of the dense weight, ratio to the dense layer) of the rows of `blr`, likewise."""
    for device, item in (("cuda", 2), ("cpu", 4)):
        found = []
        for key, row in rows_of(results, f"blr-{device}").items():
            *_, kind, n, _ = key.split()
            figures = row["figures"]
            found.append((kind, int(n.removeprefix("n=")), figures["dense_weight_bytes"] // item, figures["ratio"]))
        if found:
            return found
    return []


def draw_ks(found: list[tuple[float, float, float]]) -> Drawn:
    """Kronecker-sparse products at density and size, over the best baseline."""
    figure, panel = axes("ks-map")
    densities, sizes, ratios = zip(*found, strict=True)
    dots = panel.scatter(densities, sizes, c=ratios, **_colours(ratios))
    figure.colorbar(dots, ax=panel, label="best baseline's time / ours")
    _logarithmic(panel)
    return drawn("ks-map", figure, wins=_wins(ratios))


def draw_blr(found: list[tuple[str, int, int, float]]) -> Drawn:
    """Block low-rank layers at the number of inputs and the size of the dense weight, over the dense layer."""
    figure, panel = axes("blr-map")
    ratios = [ratio for *_, ratio in found]
    texts = []
    for (kind, beside), marker in zip(KINDS.items(), MARKERS, strict=False):
        some = [row[1:] for row in found if row[0] == kind]
        if not some:
            continue
        tokens, sizes, own = zip(*some, strict=True)
        dots = panel.scatter([beside * n for n in tokens], sizes, c=own, marker=marker, label=kind, **_colours(ratios))
        texts.append(f"{kind} {_wins(own)}")
    figure.colorbar(dots, ax=panel, label="dense layer's time / ours")
    _logarithmic(panel)
    panel.legend(fontsize=9, loc="center", bbox_to_anchor=(0.38, 0.5))
    return drawn("blr-map", figure, wins=", ".join(texts))


def _colours(ratios: Any) -> dict[str, Any]:
    """Purple is faster than the baseline, orange slower, white as fast."""
    from matplotlib.colors import TwoSlopeNorm

    norm = TwoSlopeNorm(1.0, min(0.5, *ratios), max(1.5, *ratios))
    return {"cmap": "PuOr", "edgecolors": "0.3", "linewidths": 0.5, "norm": norm}


def _logarithmic(panel: Any) -> None:
    for axis, scale in ((panel.xaxis, panel.set_xscale), (panel.yaxis, panel.set_yscale)):
        scale("log")
        axis.set_major_formatter(_power)
        axis.set_minor_formatter("")


def _wins(ratios: Any) -> str:
    return f"{sum(ratio > 1 for ratio in ratios)} of {len(ratios)}"


def _power(number: float, _: object) -> str:
    """A power of ten in type of one size."""
    return f"{number:g}" if 1e-3 <= number <= 1e3 else f"1e{round(math.log10(number))}"
