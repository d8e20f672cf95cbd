"""`lcma lift`"""

from __future__ import annotations

import click

from ...schemes_db.catalog import Catalog
from ...search import lift_pool
from ..help import lcma_command
from ..options import Duration, seed_option
from ..output import print_json
from ..schemes import pool_argument


@lcma_command("lift", json="the shares and the digests")
@click.argument("schemes", metavar="SCHEME...", nargs=-1, required=True)
@click.option("--ring", default="Z", show_default=True, help="Z, or Q, which allows fractions.")
@seed_option
@click.option("--sparse", is_flag=True, help="Go to a sparse basis first: more ternary lifts of dense schemes.")
@click.option(
    "--walk", "walks", type=click.IntRange(0), default=0, show_default=True, help="Neighbours to try for -1, 0, 1."
)
@click.option("--signs", type=Duration(), default="0s", show_default=True, help="CP-SAT seconds on each for -1, 0, 1.")
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Threads. The lifts do not depend on it."
)
def command(
    schemes: tuple[str, ...], ring: str, seed: int, sparse: bool, walks: int, signs: float, jobs: int, as_json: bool
) -> int:
    """Lift schemes from Z2 or Z3 to the integers or the rationals.

    Lifted schemes are certified and stored; the shares are reported. With --walk and --signs, what does not
    lift to coefficients -1, 0 and 1 is tried again: near by, and with signs chosen by CP-SAT. A run
    folder means its finds over Z2. Exit code 1: nothing lifted.
    """
    result = lift_pool(
        pool_argument(schemes, origins=True), ring=ring, seed=seed, jobs=jobs, sparse=sparse, walks=walks, signs=signs
    )
    digests = []
    with Catalog.open() as catalog:
        for one in result.lifts:
            if one.scheme is not None and one.certificate is not None:
                catalog.add(one.scheme, one.certificate)
                digests.append(one.scheme.digest)
    if as_json:
        print_json(
            {
                "pool": len(result.lifts),
                "shares": result.shares,
                "reasons": result.reasons,
                "seconds": result.seconds,
                "schemes": digests,
            }
        )
    else:
        shares = ", ".join(f"{count} {name} ({count / len(result.lifts):.0%})" for name, count in result.shares.items())
        click.echo(f"{len(result.lifts)} schemes in {result.seconds:.2f} s ({result.per_second:.0f}/s): {shares}")
        for reason, count in result.reasons.items():
            click.echo(f"  {count}: {reason}")
    return 0 if digests else 1
