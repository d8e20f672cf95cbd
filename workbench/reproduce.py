"""Run again the search that a scheme came from, in a home of its own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from ..errors import CatalogError
from ..schemes_db import Ring, Scheme
from ..schemes_db.catalog import Catalog
from ..schemes_db.provenance import Step

FILES = {"--out", "--start"}
"""Options of a search that may name files of the user's."""

DIGEST = re.compile(r"[0-9a-f]{12,64}")
"""A start that is no file, as searches run in an empty folder."""

FOUND = re.compile(r"^found <.*> ([0-9a-f]{12}),", re.MULTILINE)
"""What `lcma search` prints of a find; the start of its digest."""


def lifted_again(scheme: Scheme, ring: Ring, seed: int) -> Scheme:
    """The lift of a scheme over Z2 or Z3.

    Raises:
        CatalogError: it has none.
        PlanError: the scheme is over another ring, or there are no lifts to `ring`.
    """
    from ..search.lifting.lift import lift  # imports a compiler

    found = lift(scheme, ring=ring, seed=seed)
    if found.scheme is None:
        raise CatalogError(f"no lift was found: {found.reason}")
    return found.scheme


def searched_again(step: Step, digest: str) -> Scheme:
    """The scheme that the step makes, else that with the digest, among what `lcma search ... --seed N` finds now.

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
    given = [value for name, value in pairwise([*options, ""]) if name in FILES]
    if "--out" in options or not all(DIGEST.fullmatch(value) for value in given):
        raise CatalogError("the command reads or writes files of its own")
    digest = step.makes or digest
    with tempfile.TemporaryDirectory(prefix="lcma-reproduce-") as folder:
        environment = {**os.environ, "LCMA_HOME": folder}
        command = [sys.executable, "-P", "-m", "lcma", *words[1:]]
        ended = subprocess.run(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
        sys.stderr.write(ended.stdout)
        with Catalog.open(Path(folder, "data", "catalog.db")) as catalog:
            found = [entry.digest for entry in catalog.entries(origin="user")]
            # A shipped scheme that is found is known already, and only printed.
            if digest in found or digest[:12] in FOUND.findall(ended.stdout):
                return catalog.find(digest)[0]
    if ended.returncode:
        raise CatalogError(f"the search ended with exit code {ended.returncode}")
    raise CatalogError(f"the search found {len(found)} other schemes")
