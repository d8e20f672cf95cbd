"""`lcma plan`"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ...errors import PlanError
from ...kernels import Decision, decision_for, strategies
from ..explanation import dense_weight, explanation, roofline_checks
from ..help import lcma_command
from ..options import argument, group, option
from ..output import print_figures, print_json, wants_json
from ..product_options import ProductOptions
from ..products import machine_of, sizes_given
from ..schemes import planned_scheme


@lcma_command
def command(
    *,
    arguments: tuple[str, ...] = argument("M K N|K"),
    product: ProductOptions = group(ProductOptions),
    scheme: str = option(default="auto"),
    levels: int | None = option(type=click.IntRange(0, 8)),
    explain: bool = option(),
    profile: str | None = option(metavar="NAME|FILE"),
    threads: int | None = option(type=click.IntRange(1, 1024)),
    max_error: float | None = option(),
) -> None:
    if (matrix := product.factored(arguments, max_error=max_error)) is not None:
        request = product.request_by(matrix)
    else:
        request = product.request(sizes_given(arguments, 0), max_error=max_error)
    ring, strategy, device = product.ring, product.strategy, product.device
    with device.current():
        machine = machine_of(request, profile, threads)
        chosen = planned_scheme(scheme) if ring is not None else scheme
        decision = decision_for(request, chosen, levels, strategy=strategy, machine=machine)
    found = explanation(decision, strategies(device.kind))
    if scheme == "auto" and strategy is None and ring is None and decision.baseline_seconds is None:
        known = f"profile {machine.profile.id} has no rates of {request.arithmetic} products"
        mend = f"measure them with lcma doctor --profile{' --device cuda' if request.device == 'cuda' else ''}"
        raise PlanError(f"{known}; {mend}, or choose another --dtype")
    if wants_json():
        print_json(found)
        return
    used, basis = decision.machine.profile, found["basis"]
    click.echo(f"{request} on {used.hardware} ({used.source}, {used.id})")
    click.echo(f"plan:      {decision.plan.candidate}: {decision.reason}")
    base = f"{decision.baseline.candidate} {_ms(decision.baseline_seconds)}"
    gain = "" if found["ratio"] is None else f", {found['ratio']:.3f} times as fast"
    memory = f"workspace {decision.plan.workspace / 1e6:.1f} MB"
    click.echo(f"{basis + ':':<10} {_ms(decision.seconds)}, {base}{gain}; {memory}")
    dense = dense_weight(decision, strategies(device.kind))
    if dense is not None and (explain or dense.ratio < 1):
        click.echo(f"dense:     {dense}")
    if explain:
        _explain(decision, found)


def _explain(decision: Decision, found: Mapping[str, Any]) -> None:
    """Print all that an explanation holds beside the plan."""
    if notes := decision.machine.profile.notes:
        click.echo(f"profile:   {notes}")
    for check in roofline_checks(decision.plan):
        click.echo(f"roofline:  {check}")
    for margin in found["margins"]:
        click.echo(f"margin:    {margin['where']} less than the baseline's time ({margin['measured']})")
    print_figures("stages", found["terms"])
    if found["considered"]:
        print_figures("considered", found["considered"], basis=found["basis"])
    for name, reason in decision.refused:
        click.echo(f"refused:   {name}: {reason}")


def _ms(seconds: float | None) -> str:
    return "of unknown time" if seconds is None else f"{1e3 * seconds:.4g} ms"
