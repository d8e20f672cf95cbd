"""`python -m lcma` is the command `lcma`."""

from .workbench.cli import run

run()
