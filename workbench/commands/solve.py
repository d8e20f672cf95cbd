"""`lcma solve`"""

from __future__ import annotations

import click

from ...schemes_db import parse_target
from ...schemes_db.catalog import Catalog
from ...search import solve
from ..help import lcma_command
from ..options import Duration, seed_option
from ..output import print_json
from ..progress import Progress


@lcma_command("solve", json="the answer")
@click.argument("target", metavar="TARGET")
@click.option("--rank", type=click.IntRange(1), required=True, help="The number of products.")
@click.option("--ring", default="ZT", show_default=True, help="Z2, or ZT for coefficients -1, 0, 1.")
@seed_option
@click.option("--time", "seconds", type=Duration(), default="60s", show_default=True, help="Deterministic seconds.")
@click.option("--prove", is_flag=True, help="Order the products: quicker to a proof that there is none.")
def command(target: str, rank: int, ring: str, seed: int, seconds: float, prove: bool, as_json: bool) -> int:
    """Solve the Brent equations of a tiny target, or prove that they have no solution.

    Exit code 0: a scheme was found, certified and stored, or it is proven that there is none; 1: the
    time was over before either.
    """
    wanted = parse_target(target)
    with Progress("building the model") as progress:
        answer = solve(
            wanted, rank, ring=ring.upper(), seconds=seconds, seed=seed, ordered=prove, on_tick=progress.update
        )
    if answer.scheme is not None and answer.certificate is not None:
        with Catalog.open() as catalog:
            catalog.add(answer.scheme, answer.certificate)
    if as_json:
        digest = answer.scheme.digest if answer.scheme else None
        print_json({"answer": answer.word, "scheme": digest, "seconds": answer.seconds})
    elif answer.scheme is not None:
        click.echo(f"found {answer.scheme!r} {answer.scheme.digest[:12]}, certified, in {answer.seconds:.2f} s")
    elif answer.word == "infeasible":
        among = "modulo 2" if ring.upper() == "Z2" else "with coefficients -1, 0 and 1"
        click.echo(f"infeasible: {wanted} has no scheme of rank {rank} {among} ({answer.seconds:.2f} s)")
    else:
        click.echo(f"unknown after {answer.seconds:.2f} s: give it more --time")
    return 1 if answer.word == "unknown" else 0
