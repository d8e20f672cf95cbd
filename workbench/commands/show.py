"""`lcma show`"""

from __future__ import annotations

import click

from ...kernels.codegen.programs import program_for
from ...schemes_db import Certificate, Scheme, costs
from ...schemes_db.catalog import Catalog
from ...schemes_db.formats import lcma_json, written
from ...schemes_db.names import visible
from ...schemes_db.ranks import best_known
from ...schemes_db.reproduce import reproduced
from ...verify.report import proof_text
from ..help import lcma_command
from ..options import argument, option
from ..output import answer, ratio, wants_json
from ..reproduce import lifted_again, searched_again
from ..schemes import scheme_argument


@lcma_command("show", json="the scheme, its costs and its certificate")
def command(
    *,
    scheme: str = argument("SCHEME"),
    reproduce: bool = option(),
) -> int:
    """Show a scheme: equations, costs, certificate, provenance.

    With --reproduce the steps that made it are run again: constructions and lifts from kept schemes, and
    searches on this processor by their command and seed. A step that is recorded as one that can't be repeated
    is skipped where its result is kept. Exit code 1: the result is another scheme; 3: a step can't be
    repeated, which is said.

    The output is itself a scheme file: `lcma show strassen > s.txt && lcma verify s.txt`.
    """
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
