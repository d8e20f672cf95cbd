"""The figures of the documentation, drawn from the rows of benchmarks and from the catalogue: all of them by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...home import write_atomic
from ..bench.picture import save
from . import kronecker, maps, ranks, speed
from .canvas import TEXTS, Figure
from .kronecker import BMM_FIGURE, GENERIC_FIGURE

FIGURES = (
    Figure("speedup", speed.speedups, speed.draw_speedups),
    Figure("roofline", speed.float32_points, speed.draw_roofline),
    Figure("accuracy", speed.errors, speed.draw_errors),
    Figure("ranks", ranks.gaps, ranks.draw_ranks),
    Figure("triples", ranks.ratios, ranks.draw_ratios),
    Figure("discovery", speed.times, speed.draw_discovery),
    Figure("ks-map", maps.patterns, maps.draw_ks),
    Figure("ks-generic", partial(kronecker.speedups, GENERIC_FIGURE), kronecker.draw_generic),
    Figure("ks-bmm", partial(kronecker.speedups, BMM_FIGURE), kronecker.draw_bmm),
    Figure("ks-layouts", kronecker.layout_ratios, kronecker.draw_layouts),
    Figure("blr-map", maps.layers, maps.draw_blr),
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
        if not (found := figure.rows(results)):
            done.append(Written(figure.name, "", f"no rows: needs {TEXTS[figure.name]['needs']} in {results}"))
            continue
        drawn = figure.draw(found)
        save(drawn.figure, out / f"{figure.name}.svg")
        write_atomic(out / f"{figure.name}.txt", drawn.alt + "\n")
        done.append(Written(figure.name, drawn.alt))
    return done
