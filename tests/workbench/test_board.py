"""The formats up to 16 x 16 x 16 beside the table, and the pages of the catalogue: one number everywhere."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import lcma
from lcma.schemes_db import Z
from lcma.schemes_db.algebra import naive
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.costs import additions, full_and_half
from lcma.schemes_db.ranks import format_of
from lcma.schemes_db.shipped import shipped, shipped_names
from lcma.workbench.board import board_cells, composed, summary
from lcma.workbench.site.heat import heat_maps
from lcma.workbench.site.listing import listing

from .pages import table

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cells():
    with Catalog.in_memory() as catalog:
        return board_cells(catalog)


def checked(*files):
    """The exit code and output of the checker, in an interpreter without site packages."""
    call = [sys.executable, "-I", "-S", str(ROOT / "examples" / "check_scheme.py"), *map(str, files)]
    result = subprocess.run(call, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout


def test_the_numbers_are_the_same_everywhere(cells, home, run):
    total = summary(cells)
    assert (total["formats"], total["at_or_below"], total["below"]) == (680, 467, 184)
    own = sum(cell.part.how == "scheme" for cell in cells if cell.gap < 0)
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert (
        f"of the 680 formats up to 16x16x16, {total['at_or_below']} are at or below the table of 2 July 2026" in readme
    )
    assert f"{total['below']} below it, {own} of these by a scheme of their own" in readme
    data = run.json("report", "catalogue")
    assert data["summary"]["Z"] == total
    assert [row["format"] for row in data["formats"]] == [cell.name for cell in cells]
    assert f"| 16x16x16 | 680 | {100 * total['mean_gap']:.2f}% |" in (ROOT / "docs" / "catalogue.md").read_text()
    with Catalog.in_memory() as catalog:
        board = heat_maps(listing(catalog))[0]
    assert (board.ring, len(board.cells), board.counted("record")) == ("Z", 680, total["below"])
    assert board.counted("record", "g0") == total["at_or_below"]


def test_the_records_are_what_is_below_the_table(cells):
    page = (ROOT / "docs" / "records.md").read_text()
    full = page[page.index("## Full products") : page.index("## Structured products")]
    rows = {row[0]: row for row in table(full, 9)}
    below = [cell for cell in cells if cell.gap < 0]
    assert set(rows) == {cell.name for cell in below} | {"format"}
    for cell in below:
        assert rows[cell.name][1:3] == [str(cell.part.rank), str(cell.known.rank)]
        assert (f"`lcma compose {cell.name} --out {cell.name}.json`" in rows[cell.name][8]) == (not rows[cell.name][7])
    assert {cell.name: cell.gap for cell in cells if cell.name in ("2x4x9", "2x4x10")} == {"2x4x9": 0, "2x4x10": 0}


def test_no_shipped_scheme_is_below_what_is_said(cells):
    ranks = {cell.shape: cell.part.rank for cell in cells}
    for name in shipped_names():
        scheme = shipped(name).scheme
        if scheme.target.is_general and scheme.ring == Z:
            assert ranks[tuple(sorted(scheme.target.shape))] <= scheme.rank


def test_the_checker_finds_what_is_right_and_wrong(run, home, tmp_path):
    for name in ("strassen", "2x8x8-r96"):
        run.ok("export", name, "--format", "fmm-json", "--out", tmp_path / f"{name}.json")
    code, out = checked(tmp_path / "strassen.json", tmp_path / "2x8x8-r96.json")
    assert (code, [line.split()[:4] for line in out.splitlines()]) == (
        0, [["OK", "2x2x2", "rank", "7"], ["OK", "2x8x8", "rank", "96"]])  # fmt: skip
    data = json.loads((tmp_path / "strassen.json").read_text())
    for key in "uvw":
        wrong = json.loads(json.dumps(data))
        place = next(i for i, x in enumerate(wrong[key][0]) if x)
        wrong[key][0][place] *= -1
        (tmp_path / "wrong.json").write_text(json.dumps(wrong))
        assert checked(tmp_path / "wrong.json")[0] == 1
    text = (ROOT / "examples" / "check_scheme.py").read_text()
    assert {line.split()[1] for line in text.splitlines() if line.startswith(("import", "from"))} == {
        "json", "secrets", "sys", "fractions"}  # fmt: skip


@pytest.mark.slow
def test_every_record_is_exported_with_an_index_and_right_by_another_program(cells, home, tmp_path, run):
    run.ok("export", "--records", "--format", "fmm-json", "--out", tmp_path / "records")
    index = json.loads((tmp_path / "records" / "index.json").read_text())
    below = {cell.name: cell.part.rank for cell in cells if cell.gap < 0}
    assert {row["format"]: row["rank"] for row in index} == below
    assert all(row["rank"] < row["table"] and row["ring"] in ("ZT", "Z") for row in index)
    code, out = checked(*(tmp_path / "records" / row["file"] for row in index))
    assert (code, out.count("OK ")) == (0, len(below))


def test_what_is_composed_is_proven(cells):
    with Catalog.in_memory() as catalog:
        cell = next(cell for cell in cells if cell.name == "4x14x14")
        scheme, certificate = composed(cell.part, (14, 4, 14), catalog)
    assert (scheme.target.name, scheme.rank, cell.gap) == ("14x4x14", 525, -7)
    assert certificate.digest == scheme.digest
    assert certificate.proofs[0].method == "exact"


@pytest.mark.parametrize("name", ["catalogue", "structured", "records"])
def test_the_committed_page_is_what_the_command_writes(run, tmp_path, name):
    run.ok("report", name, "--out", tmp_path / "page.md")
    mend = f"write it again: lcma report {name} --out docs/{name}.md --force"
    assert (ROOT / "docs" / f"{name}.md").read_text() == (tmp_path / "page.md").read_text(), mend
    run.refused(2, "can't be written", "report", name, "--out", tmp_path / "page.md" / "x")


def test_every_format_has_its_best_shipped_rank_and_every_structured_target_is_there():
    page = (ROOT / "docs" / "catalogue.md").read_text()
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
    ours = [row for row in table((ROOT / "docs" / "structured.md").read_text(), 12)[1:] if row[7]]
    assert {row[1] for row in ours} >= {"2", "3", "4", "5"}
    for row in ours:
        scheme = lcma.resolve(row[11].partition(",")[0])[0]
        assert row[7:10] == figures(scheme)
        assert format_of(scheme.target) in (["ug"] if "general" in row[0] else ["ul", "uu"])


def test_the_fronts_hold_what_no_other_shipped_scheme_is_as_good_as():
    rows = table((ROOT / "docs" / "structured.md").read_text(), 9)[1:]
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
