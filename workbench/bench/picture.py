"""Pictures of rows, as SVG through matplotlib."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import PlanError
from ...home import write_atomic

Rows = Sequence[Mapping[str, Any]]


def new_figure(width: float, height: float) -> tuple[Any, Any]:
    """An empty figure of so many inches and its axes.

    Raises:
        PlanError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlanError("pictures need matplotlib: pip install 'lcma[report]', or give --no-picture") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def save(figure: Any, path: Path) -> None:
    """Write a figure as SVG or PNG, by the suffix; the same rows give the same SVG."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "lcma", "svg.fonttype": "none"}):
        kind: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix == ".svg" else {"dpi": 150}
        figure.savefig(buffer, format=path.suffix[1:], **kind)
    write_atomic(path, buffer.getvalue())


def ratios(rows: Rows, path: Path, figure: str = "ratio") -> None:
    """A dot a row at its ratio to the baseline, with its interval where it has one, and a tick at its bar."""
    shown = [row for row in rows if isinstance(row["figures"].get(figure), int | float)]
    if not shown:
        return
    drawing, axes = new_figure(8, 1 + 0.25 * len(shown))
    for place, row in enumerate(shown):
        value = row["figures"][figure]
        if ends := row["figures"].get("interval"):
            axes.plot(ends, (place, place), color="0.6", linewidth=2)
        axes.plot(value, place, "o", color="tab:orange" if row["contended"] else "tab:blue")
    axes.axvline(1.0, color="0.3", linewidth=1)
    axes.set_yticks(range(len(shown)), [row["key"] for row in shown], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"{figure}: more than 1 is faster than the baseline (orange: others were computing)")
    axes.grid(axis="x", color="0.9")
    save(drawing, path)
