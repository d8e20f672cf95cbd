"""`lcma bench`"""

from __future__ import annotations

from pathlib import Path

import click

from ...errors import PlanError
from ..bench.case import Options
from ..bench.journal import Journal
from ..bench.runner import SUITES, chosen_cases, find_suite, run_cases, seconds_of_rows
from ..bench_report import bars_of, newest_rows, notes_of
from ..destination import claim, claim_folder
from ..help import lcma_command
from ..options import DURATION, POSITIVE, Choice, argument, option
from ..output import answer, cell, figure, print_table, wants_json
from ..products import Device
from ..progress import Progress


@lcma_command
def command(
    *,
    suite: str | None = argument("SUITE", required=False),
    patterns: tuple[str, ...] = option("--rows", metavar="PATTERN"),
    budget: float | None = option(type=DURATION),
    resume: bool = option("--resume/--fresh", default=True),
    out: Path = option(default=Path("docs/results")),
    device: str = option(type=Choice(["cpu", "cuda"]), default="cpu"),
    sample: int | None = option(type=POSITIVE),
    rounds: int | None = option(type=click.IntRange(1, 1000)),
    sizes: tuple[int, ...] = option(type=POSITIVE),
    dtypes: tuple[str, ...] = option("--dtype"),
    seed: int = option(default=0),
    measure: str | None = option(type=Choice(["energy", "shares", "gradients"])),
    picture: bool = option("--picture/--no-picture", default=True),
    dry_run: bool = option(),
) -> int:
    if suite is None:
        suites = {name: row["help"] for name, row in SUITES.items()}
        formatter = click.HelpFormatter()
        formatter.write_dl(list(suites.items()))
        answer(suites, formatter.getvalue().rstrip("\n"))
        return 0
    found = find_suite(suite)
    if measure is not None and measure not in found.flags:
        raise click.UsageError(f"suite {found.name} has no --measure {measure}")
    if sizes and not found.sized:
        raise click.UsageError(f"suite {found.name} has no --sizes")
    columns = found.columns if measure is None else found.flags[measure]
    options = Options(device, sample, rounds, dtypes, seed, sizes, measure or "")
    cases = chosen_cases(found, options, patterns)
    journal = Journal(out / f"{found.name}-{device}.jsonl")
    if dry_run:
        known = seconds_of_rows(journal)
        listed = [{"row": one.key, "seconds": known.get(one.key), "bars": [*map(str, one.bars)]} for one in cases]
        shown = [(one.key, figure(known.get(one.key), ".0f"), ", ".join(map(str, one.bars))) for one in cases]
        answer(listed, lambda: print_table(("row", "seconds, last", "bars"), shown, prose=("bars",)))
        return 0
    if not found.name.startswith("search"):  # its walks need no torch
        Device(device).require()
    claim_folder(out)
    if not journal.rows():  # what stands beside rows was written with them
        for path in sorted(out.glob(f"{found.name}-{device}*")):
            claim(path)
    results = []
    with Progress() as progress:
        for row in run_cases(found, cases, options, journal, budget, resume, progress.update):
            results.append(row)
    rows = [
        (row["key"], *(cell(row["figures"].get(name)) for name in columns), bars_of(row), notes_of(row))
        for row in results
    ]
    sentences = ("", "bars")
    answer(results, lambda: print_table(("row", *columns, "bars", ""), rows, stay=sentences, prose=sentences))
    if results and all(row["refused"] for row in results):
        raise PlanError(f"no row of {found.name} can run here: {results[0]['refused']}")
    if not wants_json():
        click.echo(f"{len(results)} of {len(cases)} rows; data in {journal.path}", err=True)
    if picture and results:
        found.picture(newest_rows(out, found.name, device), out / f"{found.name}-{device}.svg")
    return int(any(not met for row in results for _, met in row["bars"]))
