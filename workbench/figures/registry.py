"""All figures by name, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...home import write_atomic
from ..bench.picture import save
from .accuracy import draw_errors
from .canvas import Figure
from .discovery import draw_discovery
from .kronecker import draw_bmm, draw_generic, draw_layouts
from .maps import draw_blr, draw_ks
from .ranks import draw_ranks
from .speed import draw_roofline, draw_speedups

FIGURES = (
    Figure("speedup", "cpu-cpu.jsonl or gpu-cuda.jsonl", draw_speedups),
    Figure("roofline", "gpu-cuda.jsonl", draw_roofline),
    Figure("accuracy", "precision-cpu.jsonl", draw_errors),
    Figure("ranks", "the shipped catalogue", draw_ranks),
    Figure("discovery", "search-cpu.jsonl", draw_discovery),
    Figure("ks-map", "ks-cuda.jsonl or ks-cpu.jsonl", draw_ks),
    Figure("ks-generic", "ks-cuda.jsonl, both layouts", draw_generic),
    Figure("ks-bmm", "ks-cuda.jsonl, both layouts", draw_bmm),
    Figure("ks-layouts", "ks-cuda.jsonl, both layouts", draw_layouts),
    Figure("blr-map", "blr-cuda.jsonl or blr-cpu.jsonl", draw_blr),
)


@dataclass(frozen=True)
class Written:
    """A figure that was written, or why it was not."""

    name: str
    alt: str
    missing: str = ""


def write_figures(results: Path, out: Path) -> list[Written]:
    """Write NAME.svg with NAME.txt, its alternative text, for every figure whose rows are there.

    The same rows give the same bytes.

    Raises:
        PlanError: matplotlib is not installed.
        OSError: `out` can't be written.
    """
    done = []
    for figure in FIGURES:
        drawn = figure.draw(results)
        if drawn is None:
            done.append(Written(figure.name, "", f"no rows: needs {figure.needs} in {results}"))
            continue
        save(drawn.figure, out / f"{figure.name}.svg")
        write_atomic(out / f"{figure.name}.txt", drawn.alt + "\n")
        done.append(Written(figure.name, drawn.alt))
    return done
