"""The page of the shipped schemes is the one that is committed."""

from pathlib import Path

import pytest

from lcma.errors import LcmaError
from lcma.schemes_db import parse_target
from lcma.schemes_db.shipped import shipped, shipped_names
from lcma.workbench.commands.report import command
from lcma.workbench.report import catalogue_page

COMMITTED = Path(__file__).parents[2] / "docs" / "catalogue.md"


@pytest.fixture(scope="module")
def page():
    return catalogue_page()


def test_the_committed_page_is_what_the_command_writes(page, tmp_path):
    assert COMMITTED.read_text() == page, "write it again: lcma report catalogue --out docs/catalogue.md --force"
    command.main(["catalogue", "--out", str(tmp_path / "page.md")], standalone_mode=False)
    assert (tmp_path / "page.md").read_text() == page
    with pytest.raises(LcmaError, match="can't be written"):
        command.main(["catalogue", "--out", str(tmp_path / "page.md" / "x")], standalone_mode=False)


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
