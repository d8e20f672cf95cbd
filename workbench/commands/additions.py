"""`lcma additions`"""

from __future__ import annotations

import json
from pathlib import Path

import click

from ...errors import LcmaError
from ...kernels.codegen.maps import maps_of
from ...schemes_db import additions_table
from ...schemes_db.catalog import Catalog
from ...schemes_db.program import Program
from ...schemes_db.shipped import shipped, shipped_names
from ...schemes_db.straightline import program_of
from ...search import Additions, fewest_additions
from ...verify import certify
from ..destination import claim, write
from ..help import lcma_command
from ..options import DURATION, POSITIVE, SEED, argument, option
from ..output import answer, answer_table
from ..schemes import pool_argument


@lcma_command
def command(
    *,
    schemes: tuple[str, ...] = argument("SCHEME...", required=False),
    every: bool = option("--all"),
    seconds: float | None = option("--time", type=DURATION),
    seed: int = SEED,
    as_is: bool = option(),
    jobs: int = option(type=POSITIVE, default=1),
    out: Path | None = option(metavar="FILE|DIR"),
) -> None:
    if every == bool(schemes):
        raise click.UsageError("name schemes, or give --all")
    if every:
        _compare(seconds or 0.0, seed, as_is, jobs, out)
        return
    claim(out, schemes)
    pool = pool_argument(schemes)
    best = fewest_additions(pool, seconds=10.0 if seconds is None else seconds, seed=seed, jobs=jobs, flips=not as_is)
    fresh = best.scheme not in pool
    if fresh:
        _keep(best)
    if out is not None:
        _write(out, best.program)
    maps = maps_of(best.program)
    counts = {"left": maps.left.additions, "right": maps.right.additions, "out": maps.merge.additions}
    what = "another scheme of that rank, certified and kept" if fresh else "proven to be the scheme"
    additions = {"plain": best.before, "now": best.count, **counts}
    answer(
        {"digest": best.scheme.digest, "additions": additions, "program": best.program.to_json()},
        f"{best.scheme!r} {best.scheme.digest[:12]}: {best.count} additions, {what}\n"
        f"  left {counts['left']}, right {counts['right']}, out {counts['out']}\n"
        f"  written out {best.before}, shared pairs {program_of(best.scheme).additions}",
    )


def _keep(found: Additions) -> None:
    with Catalog.open() as catalog:
        # Its additions written out may be more than those of the scheme it came from.
        catalog.add(found.scheme, certify(found.scheme), overwrite="never")


def _write(out: Path, program: Program) -> None:
    write(out, json.dumps(program.to_json(), indent=1) + "\n")


def _compare(seconds: float, seed: int, as_is: bool, jobs: int, out: Path | None) -> None:
    """All formats: ours, those of the tables, and what `seconds` for each shipped scheme bring."""
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LcmaError(f"{out} can't be made: {error.strerror}") from None
    rows: list[tuple[str, int, int, int | None, int | None, str]] = []
    fewest = additions_table.fewest_additions()
    for path in [] if out is None else [out / f"{one.name}.json" for one in fewest]:
        claim(path)
    for one in fewest:
        program, origin = additions_table.program_named(one.name), one.name
        if seconds and one.name in shipped_names():
            found = fewest_additions([shipped(one.name).scheme], seconds=seconds, seed=seed, jobs=jobs, flips=not as_is)
            if found.count < program.additions:
                program, origin = found.program, f"{found.scheme.digest[:12]}, kept"
                _keep(found)
        if out is not None:
            _write(out / f"{one.name}.json", program)
        known = one.known.shared if one.known else None
        behind = None if known is None else program.additions - known
        rows.append((one.target.name, one.rank, program.additions, known, behind, origin))
    columns = ("format", "rank", "additions", "table", "difference", "program")
    if answer_table(columns, rows):
        return
    differences = [row[4] for row in rows if row[4] is not None]
    click.echo(
        f"{sum(one <= 0 for one in differences)} of {len(differences)} formats with a count in the tables are at or "
        f"below it, {sum(one < 0 for one in differences)} below"
    )
