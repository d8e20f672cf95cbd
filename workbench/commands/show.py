"""`lcma show`"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from ...errors import CatalogError
from ...kernels.codegen.programs import program_for
from ...schemes_db import Certificate, Ring, Scheme, costs, parse_target
from ...schemes_db.catalog import Catalog
from ...schemes_db.formats import lcma_json, written
from ...schemes_db.names import visible
from ...schemes_db.provenance import Step
from ...schemes_db.ranks import best_known
from ...schemes_db.reproduce import reproduced
from ...search import status
from ...search.lifting.lift import lift
from ...verify.report import proof_text
from ..help import lcma_command
from ..options import argument, option
from ..output import answer, data_rows, ratio, wants_json
from ..schemes import scheme_argument


@lcma_command
def command(
    *,
    scheme: str = argument("SCHEME"),
    reproduce: bool = option(),
) -> int:
    if wants_json() and reproduce:
        raise click.UsageError("--json is not for --reproduce")
    found, certificate = scheme_argument(scheme)
    if reproduce:
        return _reproduce(found)
    facts = facts_of(found)
    with Catalog.open() as catalog:
        names = [name for name in catalog.aliases(found.digest) if name != found.name]
    data: dict[str, object] = {
        "scheme": lcma_json.to_json(found, certificate),
        "digest": found.digest,
        "aliases": names,
    }
    data |= {"steps": [step.to_json() for step in found.provenance.history], "costs": facts}
    lines = [*(f"also called: {name}" for name in names), *_comments(found, certificate, facts)]
    answer(data, written.equations(found) + "\n".join(f"# {visible(line)}" for line in lines))
    return 0


def _reproduce(scheme: Scheme) -> int:
    """Run the steps of a scheme's provenance, and report whether they give the scheme."""
    steps = scheme.provenance.history
    for number, step in enumerate(steps, start=1):
        click.echo(f"step {number}: {visible(str(step))}")
    skipped: list[int] = []
    with Catalog.open() as catalog:
        made = reproduced(
            scheme,
            lambda digest: catalog.find(digest)[0],
            lambda step: searched_again(step, scheme.digest),
            lifted_again,
            on_skip=lambda number, step: skipped.append(number),
        )
    verdict = "the same scheme" if made.digest == scheme.digest else "another scheme"
    steps_make = "1 step makes" if len(steps) == 1 else f"{len(steps)} steps make"
    if skipped:
        steps_make = f"from the result of step {', '.join(map(str, skipped))}, which can't be repeated, the others make"
    click.echo(f"{steps_make} {verdict}: {made!r} {made.digest[:12]}")
    if made.digest != scheme.digest:
        return 1
    return 3 if skipped else 0


def facts_of(scheme: Scheme) -> dict[str, object]:
    """The costs of a scheme, by name."""
    full, half = costs.full_and_half(scheme)
    program = program_for(scheme)
    exponent, recursive = costs.exponent(scheme), costs.recursive_cost(scheme)
    known = best_known(scheme.target, scheme.ring)
    facts: dict[str, object] = {
        "rank": scheme.rank,
        "products": f"{full} full + {half} half" if half else f"{full}",
        "one level cost": ratio(costs.one_level_cost(scheme)),
        "recursive cost": ratio(recursive) if recursive is not None else None,
        "exponent": f"{exponent:.6f}" if exponent is not None else None,
        "best known rank": known.rank if known else None,
        "additions": costs.additions(scheme),
        "additions, shared": program.additions,
        "nonzeros": " + ".join(str(count) for count in costs.nonzeros(scheme)),
        "growth factor": costs.growth_factor(scheme),
        "peak live tiles": program.peak_live_tiles,
    }
    if scheme.target.shared:
        facts["products X X^T"] = costs.gram_products(scheme)
    return {name: value for name, value in facts.items() if value is not None}


def _comments(scheme: Scheme, certificate: Certificate, facts: dict[str, object]) -> list[str]:
    lines = [f"{name}: {value}" for name, value in facts.items()]
    lines.append(f"digest: {scheme.digest}")
    lines += [f"proven: {proof_text(proof)} (lcma {certificate.version})" for proof in certificate.proofs]
    origin = scheme.provenance.to_json()
    lines += [f"{key}: {value}" for key, value in origin.items() if key not in ("parents", "steps", "not_kept")]
    lines += [f"step {number}: {step}" for number, step in enumerate(scheme.provenance.steps, start=1)]
    parents = [(parent, scheme.provenance.relation) for parent in scheme.provenance.parents]
    if not parents:
        with Catalog.open() as catalog:
            parents = catalog.parents(scheme.digest)
    lost = set(scheme.provenance.not_kept)
    for parent, relation in parents:
        lines.append(f"parent: {parent} ({relation}{', not kept' if parent in lost else ''})")
    return lines


ALLOWED = {row["option"]: row["values"] for row in data_rows("repeated")}
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
