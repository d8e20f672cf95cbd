"""`lcma plan`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...errors import PlanError
from ..output import print_json, print_table

if TYPE_CHECKING:
    from ...kernels import Profile, Request

SHOWN = 8
"""Ways of a plan that are listed beside the chosen one."""


@click.command("plan")
@click.argument("sizes", metavar="M K N", nargs=3, type=click.IntRange(0, 1 << 24))
@click.option("--dtype", default="float32", show_default=True)
@click.option("--explain", is_flag=True, help="Print every term of the choice.")
@click.option("--profile", "machine", metavar="NAME|FILE", help="Plan for another machine. Default: this one.")
@click.option("--device", default="cpu", show_default=True, type=click.Choice(["cpu", "cuda"]))
@click.option("--threads", type=click.IntRange(1, 1024), help="Default: those that BLAS may use.")
@click.option("--max-error", type=float, help="Bound on the error of an element, relative to K max|A| max|B|.")
@click.option("--max-workspace", type=int, metavar="BYTES", help="Bound on memory beside A, B and C.")
@click.option("--json", "as_json", is_flag=True)
def command(
    sizes: tuple[int, int, int],
    dtype: str,
    explain: bool,
    machine: str | None,
    device: str,
    threads: int | None,
    max_error: float | None,
    max_workspace: int | None,
    as_json: bool,
) -> None:
    """Show how a product would be run, and why.

    The product is M x K by K x N.

    --profile takes a file that `lcma doctor --profile` wrote, or a published machine: nvidia-h20,
    nvidia-a100-40gb, intel-8255c, amd-epyc-9k84, arm-neoverse-v1. With --device cuda the plan is that of
    the GPU's own decision; where no GPU is, it is for one like nvidia-h200.
    """
    from ...kernels import Request

    if device == "cuda":
        return plan_for_gpu(
            Request(*sizes, dtype, device="cuda", max_error=max_error, max_workspace=max_workspace),
            machine,
            explain,
            as_json,
        )
    from ...kernels.cpu.estimate import profile_for
    from ...kernels.cpu.machine import find_profile
    from ...kernels.cpu.threads import thread_count
    from ...kernels.dense.auto import decide
    from ...kernels.dense.explain import terms

    request = Request(*sizes, dtype, max_error=max_error, max_workspace=max_workspace)
    if machine:
        profile = find_profile(machine)
    else:
        profile = profile_for(request) if threads in (None, thread_count()) else profile_of_threads(threads)
    if profile.rates(dtype) is None:
        raise PlanError(f"profile {profile.id} has no rates of {dtype} products; choose another --dtype")
    decision = decide(request, profile, threads or thread_count())
    chosen, plain = decision.chosen, decision.plain
    gain = _ratio(plain.seconds, chosen.seconds)
    if as_json:
        print_json(
            {
                "sizes": sizes,
                "dtype": dtype,
                "profile": profile.id,
                "source": profile.source,
                "chosen": chosen.label(decision.choices),
                "strategy": chosen.strategy,
                "reason": decision.reason,
                "predicted_seconds": chosen.seconds,
                "gemm_seconds": plain.seconds,
                "workspace": decision.plan.workspace,
                "refused": [list(pair) for pair in decision.plan.refused],
                "terms": terms(decision, profile),
            }
        )
        return
    click.echo(f"{request} on {profile.hardware} ({profile.source}, {profile.id})")
    click.echo(f"plan:      {chosen.label(decision.choices)} by {chosen.strategy}: {decision.reason}")
    click.echo(
        f"predicted: {1e3 * chosen.seconds:.4g} ms, GEMM {1e3 * plain.seconds:.4g} ms, {gain:.3f} times as fast; "
        f"workspace {decision.plan.workspace / 1e6:.1f} MB"
    )
    if not explain:
        return
    if profile.notes:
        click.echo(f"profile:   {profile.notes}")
    for line in decision.verdicts(profile):
        click.echo(f"           {line}")
    click.echo(
        f"schemes:   {len(decision.choices.entries)} choices a level, {decision.choices.dominated} more dominated"
    )
    rows = [
        (
            term["level"],
            term["stage"],
            f"{term['flops']:.3e}",
            f"{term['bytes']:.3e}",
            f"{term['intensity']:.2f}",
            _ms(term),
        )
        for term in terms(decision, profile)
    ]
    print_table(("level", "stage", "flop", "bytes", "flop/byte", "ms"), rows)
    others = [
        (
            option.label(decision.choices),
            option.strategy,
            f"{1e3 * option.seconds:.4g}",
            f"{_ratio(plain.seconds, option.seconds):.3f}",
            f"{option.workspace / 1e6:.0f}",
        )
        for option in decision.options[:SHOWN]
    ]
    print_table(("considered", "strategy", "ms", "ratio to GEMM", "workspace MB"), others)
    for name, reason in decision.plan.refused:
        click.echo(f"refused:   {name}: {reason}")


def profile_of_threads(threads: int) -> Profile:
    """This machine's profile with another number of threads than the present one.

    Raises:
        PlanError: it was not measured.
    """
    from ...kernels.cpu.machine import machine_id, profiles_folder, read_profile

    path = profiles_folder() / f"{machine_id(threads)}.json"
    if not path.is_file():
        mend = f"run LCMA_NUM_THREADS={threads} lcma doctor --profile"
        raise PlanError(f"this machine was not measured with {threads} threads: {mend}, or name a --profile")
    return read_profile(path)


def plan_for_gpu(request: Request, machine: str | None, explain: bool, as_json: bool) -> None:
    """Show what the GPU's own decision is, and why."""
    from ...kernels.dense.decision import gpu_decision, gpu_profile, label_of

    decision = gpu_decision(request, profile := gpu_profile(machine))
    chosen, plain = decision.plan, decision.plain
    if chosen.seconds is None or plain.seconds is None:
        raise PlanError(f"profile {profile.id} has no rates of {request.dtype} products; choose another --dtype")
    if as_json:
        print_json(
            {
                "sizes": request.shape,
                "dtype": request.dtype,
                "profile": profile.id,
                "source": profile.source,
                "chosen": decision.label,
                "strategy": chosen.candidate.strategy,
                "reason": decision.reason,
                "predicted_seconds": chosen.seconds,
                "gemm_seconds": plain.seconds,
                "workspace": chosen.workspace,
                "refused": [list(pair) for pair in chosen.refused],
                "terms": decision.terms(),
            }
        )
        return
    click.echo(f"{request} on {profile.hardware} ({profile.source}, {profile.id})")
    click.echo(f"plan:      {decision.label} by {chosen.candidate.strategy}: {decision.reason}")
    click.echo(
        f"predicted: {1e3 * chosen.seconds:.4g} ms, GEMM {1e3 * plain.seconds:.4g} ms, {decision.gain:.3f} times as "
        f"fast; workspace {chosen.workspace / 1e6:.1f} MB"
    )
    if not explain:
        return
    if profile.notes:
        click.echo(f"profile:   {profile.notes}")
    print_table(
        ("way", "stage", "flop", "bytes", "flop/byte", "ms"),
        [
            (
                term["way"],
                term["stage"],
                f"{term['flops']:.3e}",
                f"{term['bytes']:.3e}",
                f"{term['intensity']:.2f}",
                _ms(term),
            )
            for term in decision.terms()
        ],
    )
    print_table(
        ("considered", "products", "ms", "ratio to GEMM"),
        [
            (label_of(ladder.schemes), ladder.rank, f"{1e3 * seconds:.4g}", f"{plain.seconds / seconds:.3f}")
            for seconds, ladder in decision.considered
        ],
    )
    for name, reason in chosen.refused:
        click.echo(f"refused:   {name}: {reason}")


def _ratio(seconds: float, other: float) -> float:
    """1 where neither takes any time."""
    return seconds / other if other else 1.0


def _ms(term: dict[str, float]) -> str:
    return f"{1e3 * term['seconds']:.3f}"
