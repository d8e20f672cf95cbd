"""Run again the search that a scheme came from, in a home of its own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from ..errors import CatalogError
from ..schemes_db import Ring, Scheme, parse_target
from ..schemes_db.provenance import Step
from ..search import status
from ..search.lifting.lift import lift

_NUMBER, _WORDS = r"\d{1,12}", r"[a-z][a-z0-9,:-]*"
_NUMBERS = ["rank", "seed", "rounds", "walks", "steps", "count"]
_NUMBERS += ["plus", "margin", "restart", "full", "nonzeros"]

ALLOWED = {
    **{f"--{name}": _NUMBER for name in _NUMBERS},
    "--time": r"\d{1,6}(\.\d+)?[smh]?",
    "--chance": r"\d*\.?\d+",
    "--jobs": r"\d{1,3}",
    "--ring": r"[A-Za-z0-9()]{1,8}",
    **{f"--{name}": _WORDS for name in ("walk", "by", "orbits", "objective")},
    "--ladder": r"auto|none|\d[\dx:,]*",
    "--device": "cpu",
    "--start": r"naive|compose|best|[0-9a-f]{12,64}",
    "--keep": r"m\d+(,m\d+)*|[0-9a-f]{12,64}",
}
"""The options that a repeated search may have, and their values: none that names a file, a folder or a machine.

A digest names no file, as searches run in an empty folder."""

FLAGS = {"-v", "--verbose", "--json"}
"""Options without a value that change nothing in what is found."""


def lifted_again(scheme: Scheme, ring: Ring, seed: int) -> Scheme:
    """The lift of a scheme over Z2 or Z3.

    Raises:
        CatalogError: it has none.
        PlanError: the scheme is over another ring, or there are no lifts to `ring`.
    """
    found = lift(scheme, ring=ring, seed=seed)
    if found.scheme is None:
        raise CatalogError(f"no lift was found: {found.reason}")
    return found.scheme


def searched_again(step: Step, digest: str) -> Scheme:
    """The scheme that the step makes, else that with the digest, among what `lcma search ... --seed N` finds now.

    The search runs in a process of its own with an empty catalogue, into a folder; what it says goes to stderr.

    Raises:
        CatalogError: the command is no search on this processor with a seed, fails, or finds other schemes.
    """
    arguments = _harmless(step.value("command"))
    digest = step.makes or digest
    with tempfile.TemporaryDirectory(prefix="lcma-reproduce-") as folder:
        environment = {**os.environ, "LCMA_HOME": folder}
        command = [sys.executable, "-P", "-m", "lcma", "search", *arguments, "--out=run"]
        ended = subprocess.run(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
        sys.stderr.write(ended.stdout)
        run = Path(folder, "run")
        finds = status(run).finds if run.is_dir() else ()
        found = {scheme.digest: scheme for find in finds for scheme in (find.origin, find.scheme)}
        if digest in found:
            return found[digest]
    if ended.returncode:
        raise CatalogError(f"the search ended with exit code {ended.returncode}")
    raise CatalogError(f"the search found {len(found)} other schemes")


def _harmless(command: str) -> list[str]:
    """Return the arguments of `lcma search` in a command, which may come from a stranger's file.

    Raises:
        CatalogError: it is another command, or has an option, a value or a target that is not allowed.
    """
    try:
        words = shlex.split(command)
    except ValueError:  # a quotation that does not end
        words = []
    # An option and its value are two words or, with "=", one.
    parts = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    rest = iter([part for part in parts[2:] if part not in FLAGS])
    targets, options = [], []
    for part in rest:
        if part.startswith("--"):
            options.append((part, next(rest, "")))
        else:
            targets.append(part)
    if parts[:2] != ["lcma", "search"] or len(targets) != 1 or "--seed" not in dict(options):
        raise CatalogError("it is no command `lcma search TARGET ... --seed N`")
    target = parse_target(targets[0], files=False)
    for name, value in options:
        if name == "--device" and value != "cpu":
            raise CatalogError("searches on GPUs do not give the same schemes again")
        if name not in ALLOWED or not re.fullmatch(ALLOWED[name], value):
            raise CatalogError(f"{name} {value[:40]!r} is not repeated: it may use files of its own or a network")
    return [target.name, *(f"{name}={value}" for name, value in options)]
