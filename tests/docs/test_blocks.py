"""Every code block of the README, the tutorials and the how-to pages is executed, and says what the page says."""

import os
import sys
from pathlib import Path

import pytest

import lcma

from .blocks import blocks_of, masked, matches, run_page

ROOT = Path(lcma.__file__).resolve().parent
PAGES = [
    "README.md",
    "docs/index.md",
    "docs/trust.md",
    *sorted(
        str(path.relative_to(ROOT))
        for folder in ("get-started", "how-to")
        for path in (ROOT / "docs" / folder).glob("*.md")
    ),
    "docs/reference/exit-codes.md",
    "docs/reference/lcma-json.md",
]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_and_say_what_it_shows(page, tmp_path):
    if "import torch" in (ROOT / page).read_text():
        pytest.importorskip("torch")
    # The page's commands know the checkout's test data, and have a home of their own that shares compiled code.
    folder = tmp_path / "page"
    folder.mkdir()
    for name in ("examples", "tests"):
        (folder / name).symlink_to(ROOT / name)
    home = tmp_path / "home"
    home.mkdir()
    (home / "cache").symlink_to(Path(os.environ["LCMA_HOME"]) / "cache")
    environment = {
        **os.environ,
        "LCMA_HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "160",
    }
    ran = run_page(ROOT / page, folder, environment)
    runnable = [block for block in blocks_of(ROOT / page) if block.language in ("python", "console") and not block.mark]
    assert ran >= len(runnable)


def test_a_wrong_output_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ echo one; echo two\none\n...\n```\n\n```python\nprint(1 + 1)\n```\n\n```output\n2\n```\n"
    )
    assert run_page(page, tmp_path, os.environ) == 2
    page.write_text(page.read_text().replace("\n2\n", "\n3\n"))
    with pytest.raises(AssertionError, match="prints"):
        run_page(page, tmp_path, os.environ)
    page.write_text("```console\n$ false\n```\n")
    with pytest.raises(AssertionError, match="ended with 1"):
        run_page(page, tmp_path, os.environ)
    page.write_text("```python\nprint('unseen')\n```\n")
    with pytest.raises(AssertionError, match="does not show it"):
        run_page(page, tmp_path, os.environ)


def test_times_rates_and_paths_are_masked_and_nothing_else():
    place = Path("/", "tmp", "x", "y")
    assert masked(f"1 found in 0.02 s, 2 rounds, 7.5 M/s: rank 23  in {place}") == [
        "1 found in #, #, #: rank 23 in PATH"
    ]
    assert matches(["a", "...", "d"], ["a", "b", "c", "d"])
    assert not matches(["a", "...", "d"], ["a", "b"])
    assert not matches(["a"], ["a", "b"])
    assert matches(["lowest ..."], ["lowest rank 7"])
