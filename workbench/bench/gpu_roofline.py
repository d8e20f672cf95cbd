"""The roofline of an H200: what the card could do, what torch's product does, and what the best scheme makes of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from .picture import Rows, new_figure, ratios, save

PEAK = {"bfloat16": 989e12, "float16": 989e12, "tf32": 494e12, "float32": 67e12, "float64": 67e12}
"""Dense flops per second of the H200 SXM, by NVIDIA's data sheet."""

BANDWIDTH = 4.8e12
"""Bytes per second of its memory, by the same."""

SIZES = {"bfloat16": 2, "float16": 2, "tf32": 4, "float32": 4, "float64": 8}

COLOURS = {
    "bfloat16": "tab:blue",
    "float16": "tab:cyan",
    "tf32": "tab:purple",
    "float32": "tab:orange",
    "float64": "tab:red",
}


def pictures(rows: Rows, path: Path) -> None:
    """The ratios of all rows, and beside them the roofline of the products among them."""
    ratios(rows, path)
    roofline(rows, path.with_name(f"{path.stem}-roofline.svg"))


def points(rows: Rows) -> dict[str, dict[float, dict[str, Any]]]:
    """Points by dtype and flops per byte: torch's rate, the best scheme's in flops of the plain product, its name."""
    found: dict[str, dict[float, dict[str, Any]]] = {}
    for row in rows:
        figures, words = row["figures"], row["key"].split()
        if words[0] not in ("product", "layer", "auto", "choice") or "flops_per_element" not in figures:
            continue
        dtype = words[1]
        intensity = round(figures["flops_per_element"] / SIZES[dtype], 1)
        point = found.setdefault(dtype, {}).setdefault(intensity, {"vendor": 0.0, "best": 0.0, "name": ""})
        point["vendor"] = max(point["vendor"], figures.get("vendor_tflops", 0.0))
        for name in ("online", "offline"):
            rate = figures.get(f"{name}_tflops", 0.0)
            if rate > point["best"]:
                point |= {"best": rate, "name": figures.get("plan", words[-1])}
    return found


def winners(places: dict[float, dict[str, Any]]) -> dict[float, str]:
    """The scheme of the highest point of every octave of intensity, where a scheme has it, without its method."""
    octaves: dict[int, tuple[float, float, str]] = {}
    for place, point in places.items():
        octave, mine = int(math.log2(place)), (point["best"], place, point["name"])
        octaves[octave] = max(octaves.get(octave, mine), mine)
    named = {place: _levels(name) for _, place, name in octaves.values()}
    return {place: name for place, name in named.items() if name != "vendor" and not name.startswith("1x1x1")}


def _levels(name: str) -> str:
    """The levels that a candidate ("scheme A * B, batched") or a recipe ("A/B@scheme:batched") names."""
    return name.removeprefix("scheme ").split(", ")[0].split("@")[0].replace("/", " * ")


def roofline(rows: Rows, path: Path) -> None:
    """A panel a dtype. Lines: the card's peak. Rings: torch's product, whose highest is its ceiling (dotted).

    Dots: the best scheme, in flops of the plain product; the winner of every octave is named.
    """
    found = points(rows)
    if not found:
        return
    drawing, axes = new_figure(10, 3 * len(found), len(found))
    for (dtype, places), panel in zip(sorted(found.items()), axes, strict=True):
        colour, steps = COLOURS[dtype], [2.0 ** (e / 4) for e in range(8, 57)]
        ceiling = max(point["vendor"] for point in places.values())
        panel.plot(steps, [min(PEAK[dtype], BANDWIDTH * x) / 1e12 for x in steps], color="0.4", linewidth=1)
        panel.axhline(ceiling, color=colour, linewidth=0.8, linestyle=":", label=f"torch's highest: {ceiling:.0f}")
        panel.plot(list(places), [point["vendor"] for point in places.values()], "o", color="0.4", fillstyle="none")
        worked = {place: point["best"] for place, point in places.items() if point["best"]}
        panel.plot(list(worked), list(worked.values()), ".", color=colour)
        for place, name in winners(places).items():
            panel.annotate(
                name, (place, places[place]["best"]), (0, 7), textcoords="offset points", fontsize=7, ha="center"
            )
        panel.set_xscale("log", base=2)
        panel.set_xlim(min(places) / 4, 2 * max(places))
        panel.set_ylim(0, 1.15 * max(PEAK[dtype] / 1e12, *worked.values()))
        panel.set_ylabel("TFLOP/s of the plain product", fontsize=8)
        panel.set_title(dtype, loc="left", fontsize=9)
        panel.legend(fontsize=8, loc="lower right")
        panel.grid(color="0.9")
    axes[-1].set_xlabel("flop per byte of A, B and C")
    save(drawing, path)
