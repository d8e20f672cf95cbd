"""The pages of the catalogue are the ones that are committed; that of the shipped schemes has all of them."""

from pathlib import Path

import pytest

from lcma.schemes_db import parse_target
from lcma.schemes_db.shipped import shipped, shipped_names
from lcma.workbench.report import catalogue_page

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def page():
    return catalogue_page()


@pytest.mark.parametrize("name", ["catalogue", "structured", "records"])
def test_the_committed_page_is_what_the_command_writes(run, tmp_path, name):
    run.ok("report", name, "--out", tmp_path / "page.md")
    mend = f"write it again: lcma report {name} --out docs/{name}.md --force"
    assert (DOCS / f"{name}.md").read_text() == (tmp_path / "page.md").read_text(), mend
    run.refused(2, "can't be written", "report", name, "--out", tmp_path / "page.md" / "x")


def test_every_format_has_its_best_shipped_rank(page):
    rows = {cells[1]: cells for line in page.splitlines() if len(cells := [c.strip() for c in line.split("|")]) == 11}
    rows.pop("format")
    rows.pop("---")
    assert len(rows) >= 20
    best = {}
    for name in shipped_names():
        scheme = shipped(name).scheme
        if scheme.target.is_general and scheme.ring.name == "Z":
            best[scheme.target.name] = min(scheme.rank, best.get(scheme.target.name, scheme.rank))
    assert {name: int(row[2]) for name, row in rows.items()} == best
    for row in rows.values():
        known, gap = row[5].split(" / ")[0], row[6].split(" / ")[0]
        assert int(row[2]) - int(known) == int(gap)


def test_structured_targets_and_compositions_are_there(page):
    for name in shipped_names():
        target = shipped(name).scheme.target
        assert target.is_general or f"| {target.name} |" in page
    assert parse_target("16x16x16").name in page
