"""Measured errors against levels."""

from __future__ import annotations

from pathlib import Path

from .canvas import COLOURS, MARKERS, Drawn, axes, rows_of

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
    figure, panel = axes("Accuracy, float32", "levels of recursion", "error / classical error")
    for place, (name, ratios) in enumerate(found.items()):
        levels = sorted(ratios)
        panel.plot(levels, [ratios[level] for level in levels], marker=MARKERS[place], color=COLOURS[place], label=name)
    panel.set_xticks(sorted({level for ratios in found.values() for level in ratios}))
    panel.set_yscale("log", base=2)
    panel.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    panel.legend(fontsize=10)
    words = "; ".join(
        f"{name} {', '.join(f'{ratio:.1f}' for ratio in ratios.values())}" for name, ratios in found.items()
    )
    return Drawn(figure, f"Error in float32 relative to the classical product at 0, 1, 2 levels: {words}.")
