"""Figures that pages quote are those of the rows in docs/results that comments below them name."""

import json
from pathlib import Path

import pytest

import lcma

ROOT = Path(lcma.__file__).resolve().parent

ROWS = {
    "loop 4096x4096x4096": {"after": 1.2274, "low": 1.214, "ms": {"numpy": 297.0, "torch": 310.0}, "plan": "scheme"},
    "loop 700x700x700": {"after": 0.998, "low": 0.989, "ms": {"numpy": 1.65, "torch": 2.0}, "plan": "vendor"},
}

TABLE = """| product | after |
| --- | --- |
| 4096 x 4096 x 4096 | 1.23 (1.214) |
| 700 x 700 x 700 | 1.00 (0.989) |
<!-- rows hand-cpu
after = loop {product}: after; low
-->
"""


@pytest.fixture
def figures(monkeypatch):
    """The module docs/_ext/figures.py."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    import figures

    return figures


@pytest.fixture
def complaints(figures, monkeypatch, tmp_path):
    """complaints(text): what is wrong with a page of this text, by the rows above."""
    (tmp_path / "hand-cpu.jsonl").write_text(
        "".join(json.dumps({"key": key, "figures": row}) + "\n" for key, row in ROWS.items())
    )
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    figures.rows_of.cache_clear()
    page = tmp_path / "page.md"

    def check(text):
        page.write_text(text)
        return figures.problems(page, "page.md")

    yield check
    figures.rows_of.cache_clear()


def test_every_figure_of_the_pages_is_that_of_its_row(figures):
    pages = figures.pages(ROOT)
    assert len(pages) > 30
    assert [one for page in pages for one in figures.problems(page, str(page.relative_to(ROOT)))] == []


def test_a_paragraph_is_compared_with_its_rows(complaints):
    text = "It ran 1.23 times as fast\nafter all.\n<!-- rows hand-cpu\n1.23 = loop 4096*: after\n-->\n"
    assert complaints(text) == []
    assert complaints(text.replace("1.23", "1.25")) == [
        "page.md:1: 1.25 is 1.2274 in docs/results/hand-cpu.jsonl (loop 4096*: after)"
    ]
    assert complaints(text.replace("1.23 times", "1.29 times")) == [
        "page.md:1: the comment says 1.23, the text does not",
        "page.md:1: no row is named for 1.29",
    ]
    assert complaints(text.replace("loop 4096", "loop 4097")) == ["page.md:1: hand-cpu.jsonl has no row 'loop 4097*'"]
    assert "no field 'before', only after, low" in complaints(text.replace(": after", ": before"))[0]
    assert "is not FIGURE = KEY: FIELD" in complaints(text.replace("1.23 = ", "1.23 "))[0]
    assert "nosuch.jsonl does not exist" in complaints(text.replace("hand-cpu", "nosuch"))[0]
    assert "2 rows 'loop *'; say which of geomean" in complaints(text.replace("4096*", "*"))[0]


def test_a_table_is_compared_cell_by_cell(complaints):
    assert complaints(TABLE) == []
    assert complaints(TABLE.replace("0.989)", "0.99)")) == []
    (message,) = complaints(TABLE.replace("(1.214)", "(1.220)"))
    assert message.startswith("page.md:1: 4096 x 4096 x 4096, after: 1.23 (1.220) is 1.2274, 1.214 in ")
    assert (
        complaints(TABLE.replace("after =", "before ="))[0] == "page.md:1: the table has no column and no row 'before'"
    )
    by_row = "| | a |\n| --- | --- |\n| times | 1.23 |\n<!-- rows hand-cpu\na @ times = loop 4096*: after\n-->\n"
    assert complaints(by_row) == []
    assert complaints(by_row.replace("1.23", "1.22"))


@pytest.mark.parametrize(
    ("figure", "source"),
    [
        ("1.23", "max loop *: after"),
        ("1.11", "geomean loop *: after"),
        ("1.11", "mean loop 4096* | loop 700*: after"),
        ("2", "count loop *: after"),
        ("1", "count loop *: after if after >= 1"),
        ("1.00", "loop *: after if plan ~ vend*"),
        ("0.958", "loop 4096*: ms.* / ms.torch"),
        ("2.3e-1", "loop 4096*: after / 5.3"),
        ("99.8%", "loop 700*: after"),
    ],
)
def test_rows_are_put_together_as_the_comment_says(complaints, figure, source):
    assert complaints(f"So {figure} it is.\n<!-- rows hand-cpu\n{figure} = {source}\n-->\n") == []
    other = figure.replace("1", "4") if "1" in figure else figure.replace("9", "4").replace("2", "4")
    assert complaints(f"So {other} it is.\n<!-- rows hand-cpu\n{other} = {source}\n-->\n")


def test_a_figure_without_a_row_needs_a_reason(complaints):
    assert complaints("It took 1.25 s.\n") == ["page.md:1: no row is named for 1.25"]
    assert complaints("It took 1.25 s.\n<!-- no rows: by hand -->\n") == []
    section = "# A\n\n1.25\n\n## B\n<!-- no rows: by hand -->\n\n1.25\n\n### C\n\n1.25\n\n## D\n\n1.25\n"
    assert complaints(section) == [f"page.md:{line}: no row is named for 1.25" for line in (3, 16)]
    free = "`1.25` and torch 2.11 and arXiv 2510.05175\n\n```\n1.25\n```\n\n    1.25\n"
    assert complaints(free + "\n| 1.25 | a |\n| --- | --- |\n| 1.25 | 7 |\n") == []
