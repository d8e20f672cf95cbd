"""The picture that ends the demonstration: bars of measured speed, as SVG without matplotlib, which is an extra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from ..home import write_atomic

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


def write(path: Path, panels: Sequence[Panel]) -> None:
    """Write the picture.

    Raises:
        OSError: the folder can't be written.
    """
    write_atomic(path, draw(panels))
