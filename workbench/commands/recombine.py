"""`lcma recombine`"""

from __future__ import annotations

import dataclasses
import shlex
import sys

import click

from ...schemes_db.catalog import Catalog
from ...schemes_db.costs import full_and_half
from ...search import Recombined, recombine
from ..help import lcma_command
from ..options import Duration, seed_option
from ..output import print_json
from ..progress import Progress
from ..schemes import pool_argument


@lcma_command("recombine", json="the result")
@click.argument("schemes", metavar="SCHEME...", nargs=-1, required=True)
@seed_option
@click.option("--time", "seconds", type=Duration(), default="60s", show_default=True, help="Deterministic seconds.")
def command(schemes: tuple[str, ...], seed: int, seconds: float, as_json: bool) -> None:
    """Combine the products of several schemes into the cheapest scheme.

    A half product weighs 1/2. SCHEMEs are ternary schemes of one target, or the run folders of searches.
    Ctrl-C ends the solver; the best scheme that it has is stored.
    """
    pool = pool_argument(schemes)
    with Progress("building the model") as progress:
        result = recombine(pool, seconds=seconds, seed=seed, on_tick=progress.update)
    command = shlex.join(["lcma", *sys.argv[1:]])
    scheme = result.scheme.replace(provenance=dataclasses.replace(result.scheme.provenance, command=command))
    with Catalog.open() as catalog:
        fresh = catalog.add(scheme, result.certificate)
    full, half = full_and_half(scheme)
    if as_json:
        print_json(
            {
                "digest": scheme.digest,
                "rank": scheme.rank,
                "full": full,
                "half": half,
                "optimal": result.optimal,
                "cheaper": result.cheaper,
                "products": result.products,
                "seconds": result.seconds,
            }
        )
    else:
        _print(result, full, half, fresh)
    if result.interrupted:
        raise KeyboardInterrupt


def _print(result: Recombined, full: int, half: int, fresh: bool) -> None:
    scheme = result.scheme
    click.echo(
        f"{scheme!r} {scheme.digest[:12]}: {full} full + {half} half products of {result.products}, "
        f"{'the cheapest there is' if result.optimal else 'not proven the cheapest'}, "
        f"{'cheaper than all of the pool' if result.cheaper else 'no cheaper than the pool'}, "
        f"{'kept' if fresh else 'known already'}"
    )
