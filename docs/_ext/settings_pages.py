"""The settings of walks as Markdown: the defaults of each walk, and the table of measured ones by format."""

from __future__ import annotations

import csv
from importlib import resources

from lcma.search.flipgraph.walkers import walk_names, walk_policy
from lcma.workbench.output import markdown_table

INTRODUCTION = """# Settings of walks

This page is generated. `lcma search` uses these settings where no option states another: the table by format and walk
first, measured as the time to the best known rank (`lcma bench search`), then the defaults of the walk, with 4 walks of
1 000 000 steps a round. [Searching](../searching.md#walks-and-moves) says what plus, margin and restart are.
"""


def settings_page() -> str:
    """The defaults of all walks and the rows of search/data/settings.csv."""
    policies = {name: walk_policy(name) for name in walk_names()}
    defaults = markdown_table(
        ("walk", "plus", "margin", "restart"),
        [(name, _count(p.plus_after), _count(p.margin), _count(p.restart_after)) for name, p in policies.items()],
    )
    text = (resources.files("lcma.search") / "data" / "settings.csv").read_text(encoding="utf-8")
    rows = [tuple(_count(cell) for cell in row) for row in csv.reader(text.splitlines())]
    measured = markdown_table(("format", "walk", "walks", "steps", "plus", "margin", "restart"), rows[1:])
    return f"{INTRODUCTION}\n## Defaults of a walk\n\n{defaults}\n\n## By format\n\n{measured}\n"


def _count(value: object) -> str:
    """A number with its thousands apart; any other text as it is."""
    text = str(value)
    return f"{int(text):,}".replace(",", " ") if text.isdigit() else text
