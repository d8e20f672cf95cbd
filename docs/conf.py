"""Sphinx's settings; `make docs` builds with them, strict and without a network."""

import os
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE / "_ext"))

# The pages show the shipped catalogue and defaults, never those of the user who builds them.
os.environ.setdefault("LCMA_HOME", str(_HERE / "_build" / "home"))

import lcma  # noqa: E402

project = "lcma"
author = "The lcma developers"
copyright = author
release = version = lcma.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generated_pages", "accessible"]
exclude_patterns = ["_build", "_ext"]
default_role = "code"
nitpicky = False
highlight_language = "text"
smartquotes_action = "qe"  # quotes and ellipses; `--` is typed in options

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_use_rtype = False
napoleon_use_ivar = True

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"lcma {release}"
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": False}
html_static_path = ["_static"]
html_css_files = ["lcma.css"]
html_copy_source = False
html_show_sourcelink = False
