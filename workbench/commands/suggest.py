"""`lcma suggest`"""

from __future__ import annotations

from typing import Any

import click

from ...kernels import Request, decision_for
from ...kernels.precision import fields_of
from ...kernels.ring import ExactRing
from ..help import lcma_command
from ..kronecker import LAYOUT, padding_advice, ranked_rows, suggested
from ..matrix_files import DTYPES
from ..options import Choice, argument, option
from ..output import answer, print_figures
from ..product_options import RING, exact_request_of
from ..products import DEVICE, Device, machine_of


@lcma_command
def command(
    *,
    sizes: tuple[int, ...] = argument("M K N|OUTPUTS INPUTS", type=click.IntRange(1, 1 << 24), required=False),
    density: float | None = option(),
    batch: int = option(type=click.IntRange(1, 1 << 20), default=4096),
    layout: str | None = option(type=LAYOUT),
    dtype: str = option(type=Choice(DTYPES), default="float32", metavar="DTYPE"),
    ring: ExactRing | None = option(type=RING),
    device: Device = option(default="cpu", type=DEVICE),
    top: int = option(type=click.IntRange(1, 100), default=5),
    profile: str | None = option(metavar="NAME|FILE"),
) -> None:
    if len(sizes) != (3 if density is None else 2):
        raise click.UsageError("give three sizes M K N, or OUTPUTS INPUTS and --density P for a layer")
    if density is not None:
        if ring is not None:
            raise click.UsageError("--density is for a layer, and takes no --ring")
        outputs, inputs = sizes
        with device.current():
            listed = suggested(outputs, inputs, density)
            lists = ranked_rows(listed, batch, layout, dtype, device, profile)[:top]
        data = {"in": inputs, "out": outputs, "density": density, "batch": batch, "candidates": lists}
        answer(data, lambda: print_figures("patterns", lists))
        if advice := padding_advice(outputs, inputs):
            click.echo(f"lcma: {advice}", err=True)
        return

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
    basis = "measured" if decision.measured else "predicted"
    data = {"sizes": sizes, "dtype": dtype, "device": str(device), "profile": machine.profile.id, "basis": basis}
    found = list(schemes.values())
    answer({**data, "reason": decision.reason, "candidates": found}, lambda: print_figures("suggested", found))
