"""`lcma solve`"""

from __future__ import annotations

from ...schemes_db import Target
from ...schemes_db.catalog import Catalog
from ...search import solve
from ..help import lcma_command
from ..options import DURATION, POSITIVE, SEED, TARGET, argument, option
from ..output import answer
from ..progress import Progress


@lcma_command
def command(
    *,
    target: Target = argument("TARGET", type=TARGET),
    rank: int = option(type=POSITIVE, required=True),
    ring: str = option(default="ZT"),
    seed: int = SEED,
    seconds: float = option("--time", type=DURATION, default="60s"),
    prove: bool = option(),
) -> int:
    with Progress("building the model") as progress:
        found = solve(
            target, rank, ring=ring.upper(), seconds=seconds, seed=seed, ordered=prove, on_tick=progress.update
        )
    if found.scheme is not None and found.certificate is not None:
        with Catalog.open() as catalog:
            catalog.add(found.scheme, found.certificate)
    scheme = found.scheme
    text = f"unknown after {found.seconds:.2f} s: give it more --time"
    if scheme is not None:
        text = f"found {scheme!r} {scheme.digest[:12]}, certified, in {found.seconds:.2f} s"
    elif found.word == "infeasible":
        among = "modulo 2" if ring.upper() == "Z2" else "with coefficients -1, 0 and 1"
        text = f"infeasible: {target} has no scheme of rank {rank} {among} ({found.seconds:.2f} s)"
    answer({"answer": found.word, "scheme": scheme and scheme.digest, "seconds": found.seconds}, text)
    return 1 if found.word == "unknown" else 0
