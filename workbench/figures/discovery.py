"""Discovery over time: the share of seeds that have reached a rank."""

from __future__ import annotations

import re
from pathlib import Path

from .canvas import COLOURS, Drawn, axes, rows_of

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
    figure, panel = axes("Time to the best known rank", "seconds, one machine of two cores", "share of seeds")
    words = []
    for place, (name, seconds) in enumerate(found.items()):
        reached = [value for value in seconds if value != float("inf")]
        shares = [(count + 1) / len(seconds) for count in range(len(reached))]
        panel.step(reached, shares, where="post", color=COLOURS[place % len(COLOURS)], label=name)
        median = seconds[len(seconds) // 2]
        words.append(f"{name} {len(reached)} of {len(seconds)} seeds, median {median:.2g} s")
    panel.set_xscale("log")
    panel.set_xticks([0.001, 0.01, 0.1, 1, 10], ["0.001", "0.01", "0.1", "1", "10"])
    panel.set_xticks([], minor=True)
    panel.set_ylim(0, 1.02)
    figure.legend(loc="outside lower center", ncols=2, fontsize=10)
    return Drawn(figure, f"Time from the naive scheme to the best known rank on a processor: {'; '.join(words)}.")
