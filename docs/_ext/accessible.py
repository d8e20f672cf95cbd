"""Make built pages accessible where Sphinx and furo leave something to do.

Boxes that scroll are reached from the keyboard, and captions of the navigation say of which level they are.
"""

from __future__ import annotations

from typing import Any

CHANGES = {
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    "<pre>": '<pre tabindex="0">',
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
}


def change(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Apply CHANGES to what themes insert: the text of the page and the navigation."""
    for name in ("body", "furo_navigation_tree"):
        text = context.get(name)
        for old, new in CHANGES.items() if text else ():
            text = text.replace(old, new)
        context[name] = text


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx, after the theme's own changes."""
    app.connect("html-page-context", change, priority=900)
    return {"parallel_read_safe": True}
