"""`lcma suggest`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ...kernels.precision import fields_of
from ..exact import exact_request_of, ring_option
from ..help import lcma_command
from ..kronecker import LAYOUT, ranked_rows, show_rows
from ..matrix_files import MADE
from ..options import Choice
from ..output import print_json, print_table
from ..products import DEVICE, Device, machine_of

if TYPE_CHECKING:
    from ...kernels.ring import ExactRing


@lcma_command("suggest", json="the result")
@click.argument("sizes", metavar="M K N|OUTPUTS INPUTS", nargs=-1, type=click.IntRange(1, 1 << 24))
@click.option("--density", type=float, help="Parameters of a layer at most, as a part of the dense one's.")
@click.option("--batch", type=click.IntRange(1, 1 << 20), default=4096, show_default=True, help="Of the layer.")
@click.option("--layout", type=LAYOUT, help="Of inputs and outputs of the layer.")
@click.option(
    "--dtype", type=Choice(MADE), default="float32", show_default=True, metavar="DTYPE", help="Of the products."
)
@ring_option("Schemes for exact products in this ring.")
@click.option("--device", default="cpu", show_default=True, type=DEVICE, help="Of the predicted times.")
@click.option("--top", type=click.IntRange(1, 100), default=5, show_default=True, help="Suggestions to print.")
@click.option("--profile", metavar="NAME|FILE", help="For another machine. Default: this one.")
def command(
    sizes: tuple[int, ...],
    density: float | None,
    batch: int,
    layout: str | None,
    dtype: str,
    ring: ExactRing | None,
    device: Device,
    top: int,
    profile: str | None,
    as_json: bool,
) -> None:
    """List the schemes that should be fastest for a size, or Kronecker-sparse patterns for a layer.

    The names of schemes are those to give to `run` and `time`. With --density, lists of patterns for a layer of
    OUTPUTS x INPUTS that keep to it are ranked by predicted time; where few patterns divide the sizes, it says which
    ones would.
    """
    from ...kernels.structured.constructions import padding_advice, suggested

    if len(sizes) != (3 if density is None else 2):
        raise click.UsageError("give three sizes M K N, or OUTPUTS INPUTS and --density P for a layer")
    if density is not None:
        if ring is not None:
            raise click.UsageError("--density is for a layer, and takes no --ring")
        outputs, inputs = sizes
        with device.current():
            found = suggested(outputs, inputs, density)
            lists = ranked_rows(found, batch, layout, dtype, device, profile)[:top]
        if as_json:
            print_json({"in": inputs, "out": outputs, "density": density, "batch": batch, "candidates": lists})
        else:
            show_rows(lists)
        if advice := padding_advice(outputs, inputs):
            click.echo(f"lcma: {advice}", err=True)
        return
    from ...kernels import Request, decision_for

    if ring is not None:
        request = exact_request_of((sizes[0], sizes[1], sizes[2]), ring, device)
    else:
        request = Request(sizes[0], sizes[1], sizes[2], device=device.kind, **fields_of(dtype))
    with device.current():
        machine = machine_of(request, profile)
        decision = decision_for(request, machine=machine)
    baseline = decision.baseline_seconds
    schemes: dict[str, dict[str, Any]] = {}
    for proposal in decision.proposals:
        candidate, source = proposal.candidate, proposal.candidate.source
        if source is None or source.key in schemes:
            continue
        if len(schemes) == top:
            break
        schemes[source.key] = {
            "schemes": candidate.label,
            "strategy": candidate.strategy,
            "method": candidate.method,
            "digests": [level.scheme.digest for level in getattr(source, "levels", ())],
            "seconds": proposal.bound,
            "ratio": None if baseline is None else baseline / proposal.bound,
        }
    if as_json:
        basis = "measured" if decision.measured else "predicted"
        data = {"sizes": sizes, "dtype": dtype, "device": str(device), "profile": machine.profile.id, "basis": basis}
        print_json({**data, "reason": decision.reason, "candidates": list(schemes.values())})
        return
    rows = [(*(one[name] for name in ("schemes", "strategy", "method")), *_figures(one)) for one in schemes.values()]
    columns = ("schemes", "strategy", "method", "ms", "ratio to baseline")
    print_table(columns, rows, stay=("ratio to baseline", "ms"))


def _figures(one: dict[str, Any]) -> tuple[str, str]:
    return f"{1e3 * one['seconds']:.4g}", "" if one["ratio"] is None else f"{one['ratio']:.3f}"
