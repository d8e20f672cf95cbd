"""What all figures share: texts, size, type, colours distinct without colour vision, newest rows by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..bench.journal import Journal, Row
from ..bench.picture import new_figure
from ..output import data_rows

WIDTH, HEIGHT = 5.0, 3.4
"""Inches: at 400 pixels wide the labels are 12 pixels high."""

COLOURS = ("#0b5f66", "#c2410c", "#5d2a8c", "#1d5fae", "#6b7280", "#17734f", "#a16207")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

TEXTS = {row["name"]: row for row in data_rows("figures")}
"""The figures by name: the files that they need, title, labels of the axes, and the alternative text with places."""


@dataclass(frozen=True)
class Drawn:
    """A figure of matplotlib and the text that says the same in words."""

    figure: Any
    alt: str


@dataclass(frozen=True)
class Figure:
    """A figure by name: `rows(results)` are what it shows, empty where rows are missing of what it needs."""

    name: str
    rows: Callable[[Path], Any]
    draw: Callable[[Any], Drawn]


def drawn(name: str, figure: Any, **said: object) -> Drawn:
    """A figure with its alternative text, whose places are filled."""
    return Drawn(figure, TEXTS[name]["alt"].format(**said))


def axes(name: str, height: float = HEIGHT) -> tuple[Any, Any]:
    """An empty figure and its axes in the common style, with a title and labels that stay readable at 400 pixels."""
    figure, panel = new_figure(WIDTH, height)
    panel.set_title(TEXTS[name]["title"], fontsize=12, loc="left")
    panel.set_xlabel(TEXTS[name]["x"], fontsize=11)
    panel.set_ylabel(TEXTS[name]["y"], fontsize=11)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    panel.tick_params(labelsize=11)
    panel.grid(color="0.9")
    panel.set_axisbelow(True)
    return figure, panel


def ticks(axis: Any, values: Iterable[float], labels: Iterable[str] | None = None) -> None:
    """Label these places of an axis ("x" or "y" of a panel) and no others."""
    values = list(values)
    axis.set_ticks(values, [f"{value:g}" for value in values] if labels is None else list(labels))
    axis.set_ticks([], minor=True)


def rows_of(results: Path, name: str) -> dict[str, Row]:
    """The newest row of each key of docs/results/NAME.jsonl that was not refused."""
    newest = Journal(results / f"{name}.jsonl").newest()
    return {key: row for key, row in newest.items() if not row.get("refused")}
