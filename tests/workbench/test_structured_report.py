"""The page of structured products is the one that is committed, and its figures are the schemes' own."""

from pathlib import Path

import lcma
from lcma.schemes_db.costs import additions, full_and_half
from lcma.workbench.commands.report import command
from lcma.workbench.structured_report import structured_page

COMMITTED = Path(__file__).parents[2] / "docs" / "structured.md"


def test_the_committed_page_is_what_the_command_writes(tmp_path):
    page = structured_page()
    assert COMMITTED.read_text() == page, "write it again: lcma report structured --out docs/structured.md"
    command.main(["structured", "--out", str(tmp_path / "page.md")], standalone_mode=False)
    assert (tmp_path / "page.md").read_text() == page
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    ours = [row for row in rows[2:] if len(row) == 12 and row[7]]
    assert {row[1] for row in ours} >= {"4"}
    for row in ours:
        scheme = lcma.resolve(row[11].partition(",")[0])[0]
        full, half = full_and_half(scheme)
        assert row[7:10] == [str(scheme.rank), f"{full} + {half}", str(additions(scheme))]
