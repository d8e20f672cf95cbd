"""Figures that pages quote are those of the rows in docs/results that comments below them name."""

import json
import tomllib
from pathlib import Path

import pytest

import lcma

ROOT = Path(lcma.__file__).resolve().parent

ROWS = {
    "loop 4096x4096x4096": {"after": 1.2274, "low": 1.214, "ms": {"numpy": 297.0, "torch": 310.0}, "plan": "scheme"},
    "loop 700x700x700": {"after": 0.998, "low": 0.989, "ms": {"numpy": 1.65, "torch": 2.0}, "plan": "vendor"},
}

PAGES = tomllib.loads(Path(__file__).with_name("figures.toml").read_text(encoding="utf-8"))


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


@pytest.mark.parametrize(
    ("page", "old", "new", "said"),
    [(name, *change) for name, page in PAGES.items() for change in [("", "", []), *page.get("changes", [])]],
)
def test_a_page_is_compared_with_its_rows(complaints, page, old, new, said):
    found = complaints(PAGES[page]["text"].replace(old, new) if old else PAGES[page]["text"])
    assert found == said


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
