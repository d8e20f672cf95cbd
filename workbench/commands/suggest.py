"""`lcma suggest`"""

from __future__ import annotations

import click

from ..output import print_json, print_table


@click.command("suggest")
@click.argument("sizes", metavar="M K N", nargs=3, type=click.IntRange(1, 1 << 24))
@click.option("--dtype", default="float32", show_default=True)
@click.option("--top", type=click.IntRange(1, 100), default=5, show_default=True)
@click.option("--profile", "machine", metavar="NAME|FILE", help="For another machine. Default: this one.")
@click.option("--json", "as_json", is_flag=True)
def command(sizes: tuple[int, int, int], dtype: str, top: int, machine: str | None, as_json: bool) -> None:
    """List the schemes that should be fastest for a size.

    The names are those to give to `run` and `time`.
    """
    from ...kernels import Request
    from ...kernels.cpu.estimate import profile_for
    from ...kernels.cpu.machine import find_profile
    from ...kernels.cpu.threads import thread_count
    from ...kernels.dense.auto import decide

    request = Request(*sizes, dtype)
    profile = find_profile(machine) if machine else profile_for(request)
    decision = decide(request, profile, thread_count())
    plain = decision.plain.seconds
    seen: dict[tuple[int, ...], dict[str, object]] = {}
    for option in decision.options:
        if option.chain not in seen and len(seen) < top:
            seen[option.chain] = {
                "way": option.label(decision.choices),
                "strategy": option.strategy,
                "digests": [decision.choices.entries[i].scheme.digest for i in option.chain],
                "predicted_seconds": option.seconds,
                "ratio": plain / option.seconds,
            }
    if as_json:
        print_json({"sizes": sizes, "dtype": dtype, "profile": profile.id, "ways": list(seen.values())})
        return
    rows = [
        (row["way"], row["strategy"], f"{1e3 * float(str(row['predicted_seconds'])):.4g}", f"{row['ratio']:.3f}")
        for row in seen.values()
    ]
    print_table(("way", "strategy", "predicted ms", "ratio to GEMM"), rows)
