"""`lcma lift`"""

from __future__ import annotations

import click

from ...schemes_db.catalog import Catalog
from ...search import lift_pool
from ..help import lcma_command
from ..options import DURATION, POSITIVE, SEED, argument, option
from ..output import answer
from ..schemes import pool_argument


@lcma_command
def command(
    *,
    schemes: tuple[str, ...] = argument("SCHEME..."),
    ring: str = option(default="Z"),
    seed: int = SEED,
    sparse: bool = option(),
    walks: int = option("--walk", type=click.IntRange(0), default=0),
    signs: float = option(type=DURATION, default="0s"),
    jobs: int = option(type=POSITIVE, default=1),
) -> int:
    result = lift_pool(
        pool_argument(schemes, origins=True), ring=ring, seed=seed, jobs=jobs, sparse=sparse, walks=walks, signs=signs
    )
    digests = []
    with Catalog.open() as catalog:
        for one in result.lifts:
            if one.scheme is not None and one.certificate is not None:
                catalog.add(one.scheme, one.certificate)
                digests.append(one.scheme.digest)
    facts = {"pool": len(result.lifts), "shares": result.shares, "reasons": result.reasons, "seconds": result.seconds}
    shares = ", ".join(f"{count} {name} ({count / len(result.lifts):.0%})" for name, count in result.shares.items())
    rate = len(result.lifts) / max(result.seconds, 1e-9)
    lines = [f"{len(result.lifts)} schemes in {result.seconds:.2f} s ({rate:.0f}/s): {shares}"]
    lines += [f"  {count}: {reason}" for reason, count in result.reasons.items()]
    answer({**facts, "schemes": digests}, "\n".join(lines))
    return 0 if digests else 1
