"""Write the pages that are derived from the code, before Sphinx reads its sources.

docs/generated/cli/        a page a command, from click
docs/generated/api/        a page a public name, for autodoc
docs/generated/formats.md  a sample of each file format
docs/generated/search-settings.md  the settings of walks
docs/generated/benchmarks.md  the rows of docs/results with method and machine
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from api_pages import api_pages
from cli_pages import cli_pages
from format_pages import samples_page
from settings_pages import settings_page

from lcma.workbench.bench_report import benchmarks_page, block_low_rank_page


def pages(results: Path) -> dict[str, str]:
    """All generated pages by their path below docs/generated."""
    found = {f"cli/{name}.md": text for name, text in cli_pages().items()}
    found |= {f"api/{name}.md": text for name, text in api_pages().items()}
    found["formats.md"] = samples_page()
    found["search-settings.md"] = settings_page()
    found["benchmarks.md"] = benchmarks_page(results)
    found["block-low-rank.md"] = block_low_rank_page(results)
    return found


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Replace the folder; pages that did not change keep their time, so that Sphinx skips them."""
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")} if folder.exists() else set()
    for name in present - texts.keys():
        (folder / name).unlink()
    for name, text in texts.items():
        path = folder / name
        if name not in present or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""

    def generate(app: Any) -> None:
        source = Path(app.srcdir)
        write(source / "generated", pages(source / "results"))

    app.connect("builder-inited", generate)
    return {"parallel_read_safe": True}


__all__ = ["pages", "setup", "write"]
