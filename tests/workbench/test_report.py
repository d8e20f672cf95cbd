"""The pages of the catalogue are the ones that are committed, and these have all shipped schemes with their figures."""

from pathlib import Path

import pytest

import lcma
from lcma.schemes_db.algebra import naive
from lcma.schemes_db.costs import additions, full_and_half
from lcma.schemes_db.ranks import format_of
from lcma.schemes_db.shipped import shipped, shipped_names

from .pages import table

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["catalogue", "structured", "records"])
def test_the_committed_page_is_what_the_command_writes(run, tmp_path, name):
    run.ok("report", name, "--out", tmp_path / "page.md")
    mend = f"write it again: lcma report {name} --out docs/{name}.md --force"
    assert (DOCS / f"{name}.md").read_text() == (tmp_path / "page.md").read_text(), mend
    run.refused(2, "can't be written", "report", name, "--out", tmp_path / "page.md" / "x")


def test_every_format_has_its_best_shipped_rank_and_every_structured_target_is_there():
    page = (DOCS / "catalogue.md").read_text()
    rows = {row[0]: row for row in table(page, 9) if row[0] != "format"}
    assert len(rows) >= 20
    best = {}
    for scheme in (shipped(name).scheme for name in shipped_names()):
        assert scheme.target.is_general or f"| {scheme.target.name} |" in page
        if scheme.target.is_general and scheme.ring.name == "Z":
            best[scheme.target.name] = min(scheme.rank, best.get(scheme.target.name, scheme.rank))
    assert {name: int(row[1]) for name, row in rows.items()} == best
    for row in rows.values():
        known, gap = row[4].split(" / ")[0], row[5].split(" / ")[0]
        assert int(row[1]) - int(known) == int(gap)
    assert "16x16x16" in page


def test_figures_beside_the_best_known_are_those_of_our_schemes():
    ours = [row for row in table((DOCS / "structured.md").read_text(), 12)[1:] if row[7]]
    assert {row[1] for row in ours} >= {"2", "3", "4", "5"}
    for row in ours:
        scheme = lcma.resolve(row[11].partition(",")[0])[0]
        assert row[7:10] == figures(scheme)
        assert format_of(scheme.target) in (["ug"] if "general" in row[0] else ["ul", "uu"])


def test_the_fronts_hold_what_no_other_shipped_scheme_is_as_good_as():
    rows = table((DOCS / "structured.md").read_text(), 9)[1:]
    listed = {row[8].partition(",")[0]: row for row in rows}
    assert len(listed) == len(rows)
    schemes = [shipped(name).scheme for name in shipped_names()]
    mine = [scheme for scheme in schemes if not scheme.target.is_general and not scheme.ring.characteristic]
    for scheme in mine:
        orbit = set(scheme.target.orbit())
        kin = [other for other in mine if other.target in orbit]
        better = [other for other in kin if dominates(merits(other), merits(scheme))]
        assert (scheme.name in listed) == (not better), scheme.name
        if scheme.name in listed:
            row = listed[scheme.name]
            assert [row[2], row[3], row[6]] == figures(scheme)
            full, half = full_and_half(naive(lcma.parse_target(row[0].strip("`"))))
            assert row[1] == f"{full} + {half}"
            assert float(row[5].rstrip("%")) == pytest.approx(100 * merits(scheme)[1] / (full + half / 2), abs=0.06)


def figures(scheme):
    full, half = full_and_half(scheme)
    return [str(scheme.rank), f"{full} + {half}", str(additions(scheme))]


def merits(scheme):
    full, half = full_and_half(scheme)
    return scheme.rank, full + half / 2, additions(scheme)


def dominates(one, other):
    return one != other and all(x <= y for x, y in zip(one, other, strict=True))
