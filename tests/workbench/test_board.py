"""The formats up to 16 x 16 x 16 beside the table: one number everywhere, and results that anybody can check."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lcma.schemes_db import Z
from lcma.schemes_db.catalog import Catalog
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
    assert (total["formats"], total["at_or_below"], total["below"]) == (680, 414, 109)
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
