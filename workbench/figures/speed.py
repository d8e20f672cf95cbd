"""Lines: speed-ups over the vendor's product and the roofline, errors by level, times of discovery."""

from __future__ import annotations

import re
from pathlib import Path

from .canvas import COLOURS, MARKERS, Drawn, axes, drawn, rows_of, ticks

_CPU = re.compile(r"(float32|float64) (\d+) 2T")
_GPU = re.compile(r"(?:auto|product) (?!tf32)(\w+) (\d+)(?: (\S+))?")
"""Rows of tf32 are older than its strategy `scaled-half`: they are no longer what a user gets."""

PEAK, BANDWIDTH = 67e12, 4.8e12
"""Flops a second in float32 and bytes a second of the H200 SXM, by NVIDIA's data sheet."""

Series = dict[str, dict[int, float]]
"""Ratios by size, by dtype."""


def speedups(results: Path) -> dict[str, Series]:
    """Ratios of square products by device, of two sizes or more. On a GPU the best row of a size: what `auto` chose, or
    a named scheme."""
    found: dict[str, Series] = {"CPU": {}, "H200": {}}
    for device, rows, pattern in (("CPU", "cpu-cpu", _CPU), ("H200", "gpu-cuda", _GPU)):
        for key, row in rows_of(results, rows).items():
            if (named := pattern.fullmatch(key)) and row["figures"].get("ratio"):
                series = found[device].setdefault(named[1], {})
                series[int(named[2])] = max(series.get(int(named[2]), 0.0), row["figures"]["ratio"])
    lines = {device: {dtype: one for dtype, one in each.items() if len(one) > 1} for device, each in found.items()}
    return {device: series for device, series in lines.items() if series}


def draw_speedups(devices: dict[str, Series]) -> Drawn:
    """Time of the vendor's product over ours, by size."""
    figure, panel = axes("speedup")
    lines, words = 0, []
    for device, series in devices.items():
        for dtype, ratios in sorted(series.items()):
            sizes = sorted(ratios)
            style = "--" if device == "CPU" else "-"
            panel.plot(
                sizes,
                [ratios[size] for size in sizes],
                style,
                marker=MARKERS[lines % len(MARKERS)],
                color=COLOURS[lines % len(COLOURS)],
                label=f"{device} {dtype}",
            )
            words.append(f"{device} {dtype} {', '.join(f'{ratios[size]:.2f} at {size}' for size in sizes)}")
            lines += 1
    panel.axhline(1.0, color="0.3", linewidth=1)
    panel.set_xscale("log", base=2)
    sizes = sorted({size for series in devices.values() for ratios in series.values() for size in ratios})
    panel.set_xticks(sizes, [str(size) for size in sizes], rotation=30)
    panel.legend(fontsize=9, ncols=2)
    return drawn("speedup", figure, lines="; ".join(words))


def float32_points(results: Path) -> dict[float, dict[str, float]]:
    """By operations per byte in float32: TFLOP/s of torch's product and of the best scheme, of the plain product."""
    found: dict[float, dict[str, float]] = {}
    for key, row in rows_of(results, "gpu-cuda").items():
        figures, (kind, *words) = row["figures"], key.split()
        if kind not in ("product", "layer", "auto", "choice") or words[0] != "float32":
            continue
        if "flops_per_element" in figures:
            point = found.setdefault(round(figures["flops_per_element"] / 4, 1), {"vendor": 0.0, "best": 0.0})
            for name, rates in (("vendor", ["vendor"]), ("best", ["online", "offline"])):
                point[name] = max(point[name], *(figures.get(f"{rate}_tflops", 0.0) for rate in rates))
    return found


def draw_roofline(found: dict[float, dict[str, float]]) -> Drawn:
    """The best rate of a scheme against operations per byte in float32, and the card's peak."""
    figure, panel = axes("roofline")
    places = sorted(found)
    panel.plot(places, [min(PEAK, BANDWIDTH * place) / 1e12 for place in places], color="0.3", label="peak of the card")
    panel.plot(places, [found[x]["vendor"] for x in places], "s", markersize=4, color=COLOURS[4], label="torch")
    best = [(x, found[x]["best"]) for x in places if found[x]["best"] > 0]
    panel.plot(*zip(*best, strict=True), "o", markersize=4, color=COLOURS[1], label="best scheme")
    panel.set_xscale("log")
    ticks(panel.xaxis, (tick for tick in (125, 250, 500, 1000, 2000) if places[0] <= tick <= places[-1]))
    panel.set_ylim(bottom=0)
    panel.legend(fontsize=10)
    top, vendor = max(rate for _, rate in best), max(found[x]["vendor"] for x in places)
    return drawn("roofline", figure, vendor=vendor, top=top, peak=PEAK / 1e12)


SCHEMES = ("strassen", "winograd", "laderman", "4x4x4-r49", "3x4x5-r47")


def errors(results: Path) -> dict[str, dict[int, float]]:
    """The error over that of the classical product in float32 on a processor, by scheme and levels; 1 at no level."""
    found: dict[str, dict[int, float]] = {}
    for key, row in rows_of(results, "precision-cpu").items():
        words = key.split()
        if len(words) == 3 and words[0] in SCHEMES and words[2] == "float32":
            found.setdefault(words[0], {0: 1.0})[int(words[1])] = row["figures"]["ratio"]
    return found


def draw_errors(found: dict[str, dict[int, float]]) -> Drawn:
    """A line a scheme."""
    figure, panel = axes("accuracy")
    for place, (name, ratios) in enumerate(found.items()):
        levels = sorted(ratios)
        panel.plot(levels, [ratios[level] for level in levels], marker=MARKERS[place], color=COLOURS[place], label=name)
    panel.set_xticks(sorted({level for ratios in found.values() for level in ratios}))
    panel.set_yscale("log", base=2)
    panel.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    panel.legend(fontsize=10)
    words = (f"{name} {', '.join(f'{ratio:.1f}' for ratio in ratios.values())}" for name, ratios in found.items())
    return drawn("accuracy", figure, lines="; ".join(words))


_TIME = re.compile(r"time (\S+ \S+) seed \d+")

LEAST = 5
"""Seeds below which a line says nothing."""


def times(results: Path) -> dict[str, list[float]]:
    """The seconds of each seed by target and ring, ascending; infinite where the rank was not reached."""
    found: dict[str, list[float]] = {}
    for key, row in rows_of(results, "search-cpu").items():
        if named := _TIME.fullmatch(key):
            target, rank = named[1].split()[0].rsplit(":", 1)
            reached = row["figures"].get("rank") == int(rank) if rank.isdigit() and target else False
            found.setdefault(named[1], []).append(row["figures"]["seconds"] if reached else float("inf"))
    return {name: sorted(seconds) for name, seconds in found.items() if len(seconds) >= LEAST}


def draw_discovery(found: dict[str, list[float]]) -> Drawn:
    """A step line a target."""
    figure, panel = axes("discovery")
    words = []
    for place, (name, seconds) in enumerate(found.items()):
        reached = [value for value in seconds if value != float("inf")]
        shares = [(count + 1) / len(seconds) for count in range(len(reached))]
        panel.step(reached, shares, where="post", color=COLOURS[place % len(COLOURS)], label=name)
        median = seconds[len(seconds) // 2]
        words.append(f"{name} {len(reached)} of {len(seconds)} seeds, median {median:.2g} s")
    panel.set_xscale("log")
    ticks(panel.xaxis, (0.001, 0.01, 0.1, 1, 10))
    panel.set_ylim(0, 1.02)
    figure.legend(loc="outside lower center", ncols=2, fontsize=10)
    return drawn("discovery", figure, lines="; ".join(words))
