"""Templates to text, through Jinja2 with every value escaped."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from ...version import __version__
from .facts import shown
from .folder import SiteError

if TYPE_CHECKING:
    import jinja2

STATIC = ("site.css", "site.js", "verify.js", "verify_page.js")


def templates(docs: str | None = None) -> jinja2.Environment:
    """The templates, compiled once a build; `docs` is where the documentation is, from the site's root.

    Raises:
        SiteError: Jinja2 is not installed.
    """
    try:
        import jinja2
    except ImportError:
        raise SiteError("Jinja2, which makes the pages, is not installed: pip install 'lcma[report]'") from None
    found = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: read(f"templates/{name}")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {"shown": shown, "signed": lambda gap: f"{gap:+g}".replace("-", "\u2212"), "size": size}
    found.globals |= {"version": __version__, "docs": docs}
    return found


def read(name: str) -> str:
    """A template or a static file of this package."""
    return (resources.files(__package__ or __name__) / name).read_text(encoding="utf-8")


def size(count: int) -> str:
    """A number of bytes for people."""
    return f"{count} B" if count < 1000 else f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1e6:.1f} MB"
