"""`lcma suggest`"""

from __future__ import annotations

from typing import Any

import click

from ..output import print_json, print_table
from ..products import DEVICE, Device, machine_of


@click.command("suggest")
@click.argument("sizes", metavar="M K N", nargs=3, type=click.IntRange(1, 1 << 24))
@click.option("--dtype", default="float32", show_default=True)
@click.option("--device", default="cpu", show_default=True, type=DEVICE)
@click.option("--top", type=click.IntRange(1, 100), default=5, show_default=True)
@click.option("--profile", metavar="NAME|FILE", help="For another machine. Default: this one.")
@click.option("--json", "as_json", is_flag=True)
def command(
    sizes: tuple[int, int, int], dtype: str, device: Device, top: int, profile: str | None, as_json: bool
) -> None:
    """List the schemes that should be fastest for a size.

    The names are those to give to `run` and `time`.
    """
    from ...kernels import Request, decision_for

    request = Request(*sizes, dtype, device=device.kind)
    with device.current():
        machine = machine_of(request, profile)
        decision = decision_for(request, machine=machine)
    baseline = decision.baseline_seconds
    found: dict[str, dict[str, Any]] = {}
    for proposal in decision.proposals:
        candidate, source = proposal.candidate, proposal.candidate.source
        if source is None or source.key in found:
            continue
        if len(found) == top:
            break
        found[source.key] = {
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
        print_json({**data, "reason": decision.reason, "candidates": list(found.values())})
        return
    rows = [(*(one[name] for name in ("schemes", "strategy", "method")), *_figures(one)) for one in found.values()]
    print_table(("schemes", "strategy", "method", "ms", "ratio to baseline"), rows)


def _figures(one: dict[str, Any]) -> tuple[str, str]:
    return f"{1e3 * one['seconds']:.4g}", "" if one["ratio"] is None else f"{one['ratio']:.3f}"
