"""`lcma recombine`"""

from __future__ import annotations

import dataclasses

from ...schemes_db.catalog import Catalog
from ...schemes_db.costs import full_and_half
from ...search import recombine
from ..help import lcma_command
from ..options import DURATION, SEED, argument, command_line, option
from ..output import answer
from ..progress import Progress
from ..schemes import pool_argument


@lcma_command
def command(
    *,
    schemes: tuple[str, ...] = argument("SCHEME..."),
    seed: int = SEED,
    seconds: float = option("--time", type=DURATION, default="60s"),
) -> None:
    pool = pool_argument(schemes)
    with Progress("building the model") as progress:
        result = recombine(pool, seconds=seconds, seed=seed, on_tick=progress.update)
    command = command_line()
    scheme = result.scheme.replace(provenance=dataclasses.replace(result.scheme.provenance, command=command))
    with Catalog.open() as catalog:
        fresh = catalog.add(scheme, result.certificate)
    full, half = full_and_half(scheme)
    facts = {"digest": scheme.digest, "rank": scheme.rank, "full": full, "half": half}
    facts |= {name: getattr(result, name) for name in ("optimal", "cheaper", "products", "seconds")}
    answer(
        facts,
        f"{scheme!r} {scheme.digest[:12]}: {full} full + {half} half products of {result.products}, "
        f"{'the cheapest there is' if result.optimal else 'not proven the cheapest'}, "
        f"{'cheaper than all of the pool' if result.cheaper else 'no cheaper than the pool'}, "
        f"{'kept' if fresh else 'known already'}",
    )
    if result.interrupted:
        raise KeyboardInterrupt
