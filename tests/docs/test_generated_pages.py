"""Pages that are generated from the code: commands, public names, formats, benchmarks; and figures that pages quote."""

import json
import re
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import click
import pytest

import lcma
from lcma.schemes_db.formats import FORMATS, WRITERS
from lcma.workbench.bench.journal import Journal
from lcma.workbench.bench_report import benchmarks_page, block_low_rank_page
from lcma.workbench.cli import COMMANDS, cli

from ..workbench.pages import table

ROOT = Path(lcma.__file__).resolve().parent
RESULTS = ROOT / "docs" / "results"


@pytest.fixture
def extension(monkeypatch):
    """The modules of docs/_ext, as Sphinx imports them."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    yield
    for path in (ROOT / "docs" / "_ext").glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_every_command_and_every_option_has_its_place(extension):
    from cli_pages import cli_pages

    pages = cli_pages()
    assert set(pages) == {"index", *COMMANDS}
    for name in COMMANDS:
        command = cli.get_command(None, name)
        for param in command.params:
            if not getattr(param, "hidden", False):
                for option in (*param.opts, *param.secondary_opts):
                    assert not option.startswith("-") or option in pages[name]
        assert f"[lcma {name}]({name}.md)" in pages["index"]
        listed = pages[name].partition("## Arguments")[2] or pages[name].partition("## Options")[2]
        lines = listed.splitlines()
        assert not [line for line in lines if line.startswith(":") and len(line) < 5]
        assert ("## Arguments" in pages[name]) == any(isinstance(param, click.Argument) for param in command.params)
        outside = re.sub(r"```.*?```|`[^`]*`", "", pages[name], flags=re.S)
        assert not re.search(r"(?<![\w-])--\w", outside), "an option in prose is code, as it is typed"


def test_every_public_name_has_a_page(extension):
    from types import ModuleType

    from api_pages import api_pages, names_of, public_packages

    pages = api_pages()
    for name in lcma.__all__:
        value = getattr(lcma, name)
        if isinstance(value, ModuleType):
            assert value.__name__ in public_packages()
        elif name != "__version__":
            assert f":: lcma.{name}\n" in pages[name]
            assert f"[{name}]({name}.md)" in pages["index"]
    for package in public_packages():
        page = pages[package.removeprefix("lcma.").replace(".", "-")]
        assert all(f":: {package}.{name}\n" in page for name in names_of(package))


def test_every_public_function_and_class_has_a_docstring():
    public = {name: getattr(lcma, name) for name in lcma.__all__}
    assert not [name for name, one in public.items() if callable(one) and not (one.__doc__ or "").strip()]


def test_every_format_has_a_sample(extension):
    from format_pages import samples_page

    page = samples_page()
    assert all(f"## {name}\n" in page for name in FORMATS)
    assert max(map(len, page.splitlines())) < 250


def test_the_table_of_formats_states_names_conventions_and_writers():
    rows = {row[0]: (row[2], row[3]) for row in table((ROOT / "docs" / "formats.md").read_text(), 4)[1:]}
    assert rows == {name: (format_.convention, "yes" if name in WRITERS else "") for name, format_ in FORMATS.items()}


def test_every_picture_has_a_caption_below_it():
    pictures = 0
    for page in (ROOT / "docs").rglob("*.md"):
        if not {"_build", "generated"} & set(page.parts):
            for line, below in pairwise([*page.read_text().splitlines(), ""]):
                if line.startswith("!["):
                    pictures += 1
                    assert re.match(r"\*\w", below), f"{page.name}: {line}"
    assert pictures > 8


def test_boxes_that_scroll_and_captions_of_the_navigation_are_reached_from_the_keyboard(extension):
    from accessible import change

    context = {
        "body": '<div class="table-wrapper docutils"><pre>x</pre></div>',
        "furo_navigation_tree": '<p class="caption" role="heading">',
    }
    change(None, "page", "page.html", context, None)
    assert context["body"] == '<div tabindex="0" class="table-wrapper docutils"><pre tabindex="0">x</pre></div>'
    assert context["furo_navigation_tree"] == '<p class="caption" role="heading" aria-level="2">'


def test_settings_of_all_walks_and_formats_are_shown(extension):
    from settings_pages import settings_page

    from lcma.search.flipgraph.walkers import walk_names

    page = settings_page()
    assert all(f"| {name} |" in page for name in walk_names())
    assert "| flip | 5 000 | 2 | 40 000 000 |" in page
    rows = (ROOT / "search" / "data" / "settings.csv").read_text().splitlines()[1:]
    assert all(f"| {target} | {walk} |" in page for target, walk, *_ in (row.split(",") for row in rows))


def test_dead_links_are_found(extension, tmp_path):
    from check_links import dead_links

    (tmp_path / "index.html").write_text(
        '<a href="a.html#x">1</a><a href="https://example.org/none">2</a><a href="#top" id="top">3</a>'
    )
    (tmp_path / "a.html").write_text('<p id="x"></p>')
    assert dead_links(tmp_path) == []
    (tmp_path / "b.html").write_text('<a href="a.html#y">1</a><img src="none.svg">')
    assert [line.split(": ")[1] for line in dead_links(tmp_path)] == ["a.html#y (no such place)", "none.svg"]


def test_the_benchmarks_page_has_every_row_with_command_and_machine():
    page = benchmarks_page(RESULTS)
    for path in sorted(RESULTS.glob("*.jsonl")):
        rows = Journal(path).newest()
        suite, _, device = path.stem.rpartition("-")
        assert f"`lcma bench {suite}{' --device cuda' if device == 'cuda' else ''}`" in page
        assert f"docs/results/{path.name}`, {len(rows)} rows" in page
        assert all(f"| {key} |" in page for key, row in rows.items() if not row["refused"])
    assert "AMD EPYC, 2 cores" in page
    assert "NVIDIA H200" in page


def test_the_block_low_rank_page_has_every_row_and_every_step_of_its_ablation():
    page = block_low_rank_page(RESULTS)
    for name in ("blr-cuda.jsonl", "e2e_blr-cuda.jsonl", "compress-cuda.jsonl"):
        rows = Journal(RESULTS / name).newest()
        assert f"docs/results/{name}`, {len(rows)} rows" in page
        for key, row in rows.items():
            assert f"| {key} |" in page
            for step in row["figures"].get("ablation", []):
                assert f"| {key} | {step['form']} | {step['optimisation']} | {step['over_dense']:.2f} |" in page
    key = "Llama-7B gate_up monarch n=8192 bfloat16"
    figures = Journal(RESULTS / "blr-cuda.jsonl").newest()[key]["figures"]
    (line,) = (line for line in page.splitlines() if line.startswith("| Llama-7B gate_up | 8192 |"))
    assert f" {figures['ratio']:.2f} | {figures['ratios']['compiled']:.2f} |" in line
    (line,) = (line for line in page.splitlines() if line.startswith(f"| {key} |") and line.count(" | ") == 10)
    assert f" {figures['weight_bytes'] / 1e6:.4g} | {figures['dense_weight_bytes'] / 1e6:.4g} |" in line
    assert f" {figures['peak_bytes']['auto'] / 1e6:.4g} |" in line


ROWS = {
    "loop 4096x4096x4096": {"after": 1.2274, "low": 1.214, "ms": {"numpy": 297.0, "torch": 310.0}, "plan": "scheme"},
    "loop 700x700x700": {"after": 0.998, "low": 0.989, "ms": {"numpy": 1.65, "torch": 2.0}, "plan": "vendor"},
}

PAGES = tomllib.loads(Path(__file__).with_name("figures.toml").read_text(encoding="utf-8"))


@pytest.fixture
def figures(extension):
    """The module docs/_ext/figures.py, which compares the figures that pages quote with rows in docs/results."""
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
