"""`lcma additions`"""

from __future__ import annotations

import json
from pathlib import Path

import click

from ...errors import LcmaError
from ...home import write_atomic
from ...schemes_db.catalog import Catalog
from ...schemes_db.program import Lin, Load, Product
from ...schemes_db.straightline import program_of
from ...search import Additions, fewest_additions
from ...verify import certify
from ..options import Duration
from ..output import print_json
from ..pools import pool_argument


@click.command("additions")
@click.argument("schemes", metavar="SCHEME...", nargs=-1, required=True)
@click.option("--time", "seconds", type=Duration(), default="10s", show_default=True, help="How long to try.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--as-is", is_flag=True, help="Use the given schemes only: no walks to others of the same rank.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Threads for the walks.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the program there, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="The counts and the program as JSON.")
def command(
    schemes: tuple[str, ...], seconds: float, seed: int, as_is: bool, jobs: int, out: Path | None, as_json: bool
) -> None:
    """Find a program with few additions.

    Ternary schemes are changed first, by flips and changes of basis at the same rank that lower the
    additions; what comes of it is certified and kept. Sums that several products need are computed
    once, chosen by randomised restarts. The program is expanded again and proven to be the scheme.
    Of several schemes, or of the run folders of searches, the one with the fewest additions is taken.
    """
    pool = pool_argument(schemes)
    best = fewest_additions(pool, seconds=seconds, seed=seed, jobs=jobs, flips=not as_is)
    fresh = best.scheme not in pool
    if fresh:
        with Catalog.open() as catalog:
            # Its additions written out may be more than those of the scheme it came from.
            catalog.add(best.scheme, certify(best.scheme), overwrite="never")
    if out is not None:
        try:
            write_atomic(out, json.dumps(best.program.to_json(), indent=1) + "\n")
        except OSError as error:
            raise LcmaError(f"{out} can't be written: {error.strerror}") from None
    counts = dict(zip(("left", "right", "out"), by_side(best), strict=True))
    if as_json:
        print_json(
            {
                "digest": best.scheme.digest,
                "additions": {"plain": best.before, "now": best.count, **counts},
                "program": best.program.to_json(),
            }
        )
        return
    what = "another scheme of that rank, certified and kept" if fresh else "proven to be the scheme"
    click.echo(f"{best.scheme!r} {best.scheme.digest[:12]}: {best.count} additions, {what}")
    click.echo(f"  left {counts['left']}, right {counts['right']}, out {counts['out']}")
    click.echo(f"  written out {best.before}, shared pairs {program_of(best.scheme).additions}")


def by_side(found: Additions) -> tuple[int, int, int]:
    """The additions that form the left operands, the right ones, and the outputs."""
    side: dict[int, int] = {}
    counts = [0, 0, 0]
    for op in found.program.ops:
        if isinstance(op, Load):
            side[op.dst] = 0 if op.operand == "A" else 1
        elif isinstance(op, Product):
            side[op.dst] = 2
        else:
            place = side[op.terms[0][1]]
            counts[place] += len(op.terms) - 1
            if isinstance(op, Lin):
                side[op.dst] = place
    return counts[0], counts[1], counts[2]
