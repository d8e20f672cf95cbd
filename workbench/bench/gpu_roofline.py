"""The roofline of an H200: what the card could do, what torch's product does, and what the best scheme makes of it."""

from __future__ import annotations

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
    """By dtype and flops per byte: torch's rate, the best rate of a scheme in flops of the plain product, its name."""
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


def roofline(rows: Rows, path: Path) -> None:
    """Lines: the card's peak. Rings: torch's product, whose highest is its ceiling. Dots: the best scheme, named."""
    found = points(rows)
    if not found:
        return
    drawing, axes = new_figure(9, 6)
    for dtype, places in sorted(found.items()):
        colour, steps = COLOURS[dtype], [2.0**e for e in range(2, 15)]
        axes.plot(steps, [min(PEAK[dtype], BANDWIDTH * x) / 1e12 for x in steps], color=colour, linewidth=1)
        ceiling = max(point["vendor"] for point in places.values())
        axes.axhline(ceiling, color=colour, linewidth=0.7, linestyle=":")
        for place, point in sorted(places.items()):
            axes.plot(place, point["vendor"], "o", color=colour, fillstyle="none")
            if point["best"]:
                axes.plot(place, point["best"], "o", color=colour)
                axes.annotate(point["name"], (place, point["best"]), fontsize=6, rotation=20)
        axes.plot([], [], "o", color=colour, label=f"{dtype}: ceiling of torch {ceiling:.0f}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("flop per byte of A, B and C")
    axes.set_ylabel("TFLOP/s of the plain product")
    axes.legend(fontsize=8)
    axes.grid(color="0.9")
    save(drawing, path)
