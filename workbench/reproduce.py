"""Run again the search that a scheme came from, in a home of its own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from ..errors import CatalogError
from ..schemes_db import Scheme
from ..schemes_db.catalog import Catalog
from ..schemes_db.provenance import Step

FILES = {"--out", "--start"}
"""Options of a search that name files of the user's."""


def searched_again(step: Step, digest: str) -> Scheme:
    """The scheme with that digest among what a command `lcma search ... --seed N` finds now.

    The search runs in a process of its own with an empty catalogue; what it says goes to stderr.

    Raises:
        CatalogError: the command is no search on this processor with a seed, fails, or finds other schemes.
    """
    try:
        words = shlex.split(step.value("command"))
    except ValueError:  # a quotation that does not end
        words = []
    # An option and its value are two words or, with "=", one. The command may come from a stranger's file.
    options = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    if options[:2] != ["lcma", "search"] or "--seed" not in options:
        raise CatalogError("it is no command `lcma search ... --seed N`")
    devices = [value for name, value in pairwise(options) if name == "--device"]
    if any(value != "cpu" for value in devices):
        raise CatalogError("searches on GPUs do not give the same schemes again")
    if not FILES.isdisjoint(options):
        raise CatalogError("the command reads or writes files of its own")
    with tempfile.TemporaryDirectory(prefix="lcma-reproduce-") as folder:
        environment = {**os.environ, "LCMA_HOME": folder}
        command = [sys.executable, "-P", "-m", "lcma", *words[1:]]
        code = subprocess.run(command, env=environment, stdout=sys.stderr, check=False).returncode
        with Catalog.open(Path(folder, "data", "catalog.db")) as catalog:
            found = [entry.digest for entry in catalog.entries(origin="user")]
            if digest in found:
                return catalog.find(digest)[0]
    if code:
        raise CatalogError(f"the search ended with exit code {code}")
    raise CatalogError(f"the search found {len(found)} other schemes")
