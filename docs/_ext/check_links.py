"""Report links of built pages that lead nowhere: files that are missing, and fragments that no element bears.

python docs/_ext/check_links.py docs/_build/html
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def dead_links(folder: Path) -> list[str]:
    """`page: link` for every relative link below the folder that leads nowhere."""
    dead = []
    for path in sorted(folder.rglob("*.html")):
        for link in _read(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            goal = goal / "index.html" if goal.is_dir() else goal
            script = parts.fragment.startswith("?") or parts.fragment == ""
            if not goal.is_file():
                dead.append(f"{path.relative_to(folder)}: {link}")
            elif goal.suffix == ".html" and not script and unquote(parts.fragment) not in _read(goal).ids:
                dead.append(f"{path.relative_to(folder)}: {link} (no such place)")
    return dead


if __name__ == "__main__":
    found = dead_links(Path(sys.argv[1]))
    print("\n".join(found) or "every internal link leads somewhere")
    sys.exit(bool(found))
