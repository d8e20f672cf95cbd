"""Random masks with half blocks through `lcma search mask:FILE`, each with an empty LCMA_HOME.

A row's bar: what the catalogue holds afterwards, proven again, has never more products than the cheaper of the
mask's own blocks and the best full product restricted to them, a half product as half of one; and the saving
that the command prints is that of its schemes.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from ....errors import PlanError, VerificationError
from ....schemes_db import Target, Z, parse_target
from ....schemes_db.algebra import naive
from ....schemes_db.catalog import Catalog
from ....search import score_of
from ....search.starts import mask_start
from ....verify import certify
from ..case import Bar, Case, Figures, Options, Say, Suite

MASKS = 20
"""Masks of a session, by turns of 4x4 and 5x5 blocks."""

LETTERS = "FFFLU."
"""The kinds that a block is drawn from: mostly full, else a half or absent."""

SECONDS = 40.0
JOBS = 2


@dataclass
class _Session:
    """The savings of the masks of one session so far."""

    saved: list[float] = field(default_factory=list)


def drawn(seed: int) -> str:
    """The text of a random mask: 4x4 blocks for an even seed, 5x5 for an odd one."""
    size = 4 + seed % 2
    rng = np.random.default_rng(seed)
    return "\n".join("".join(rng.choice(list(LETTERS), size)) for _ in range(size)) + "\n"


def searched(session: _Session, seed: int, say: Say) -> Figures:
    """F + H/2 of the mask's own blocks, of the better start, and of the best certified scheme; the share saved."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mask.txt")
        path.write_text(drawn(seed), encoding="utf-8")
        target = parse_target(f"mask:{path}")
        own = float(score_of("cost", naive(target)))
        start = mask_start(target, Z)
        bound = own if start is None else min(own, float(score_of("cost", start)))
        options = ["--time", f"{SECONDS:g}s", "--jobs", str(JOBS), "--seed", str(seed)]
        said = subprocess.run(
            [sys.executable, "-m", "lcma", "search", f"mask:{path}", *options],
            env=os.environ | {"LCMA_HOME": folder},
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        costs = _kept_costs(Path(folder), target)
    least = min([own, *costs])
    match = re.search(r": ([\d.]+) products of blocks instead", said)
    printed = float(match.group(1)) if match else own
    if abs(printed - least) > 0.01:
        raise VerificationError(f"mask {seed}: the command says {printed:g} products, its schemes have {least:g}")
    say(f"{own:g} products of its own, {bound:g} to begin with, {least:g} found")
    session.saved.append(1 - least / own)
    return {"own": own, "bound": bound, "certified": least, "saved": session.saved[-1], "above": least - bound}


def _kept_costs(home: Path, target: Target) -> list[float]:
    """F + H/2 of the schemes that a run kept, each proven again."""
    with Catalog.open(home / "data" / "catalog.db") as catalog:
        kept = [catalog.find(entry.digest)[0] for entry in catalog.entries(target=target.name, ring="Z")]
    for scheme in kept:
        certify(scheme)
    return [float(score_of("cost", scheme)) for scheme in kept]


def mean(session: _Session, say: Say) -> Figures:
    """The mean share saved by the masks of this session."""
    if not session.saved:
        raise PlanError("no mask has been searched in this session: choose more rows")
    return {"masks": len(session.saved), "saved": statistics.mean(session.saved)}


def _cases(options: Options) -> Iterator[Case]:
    session = _Session()
    for seed in range(options.seed, options.seed + (options.sample or MASKS)):
        yield Case(f"mask {seed}", partial(searched, session, seed), SECONDS + 5, (Bar("above", 0, at_most=True),))
    yield Case("mean", partial(mean, session), 0.1)


SUITE = Suite(
    "masks",
    "products of random masks with half blocks; --sample is their number, --seed the first",
    _cases,
    ("masks", "own", "bound", "certified", "saved"),
    ("search", "workbench/finds.py", "workbench/commands/search.py"),
)
