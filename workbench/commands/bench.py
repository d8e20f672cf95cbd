"""`lcma bench`"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ...errors import PlanError
from ..bench.case import Options
from ..bench.journal import Journal
from ..bench.runner import chosen_cases, find_suite, run_cases, suite_names
from ..bench_report import bars_of, newest_rows
from ..destination import claim, claim_folder
from ..help import lcma_command
from ..options import Choice, Duration
from ..output import cell, print_json, print_table
from ..products import Device
from ..progress import Progress


@lcma_command("bench", json="the result")
@click.argument("suite", metavar="SUITE", required=False)
@click.option(
    "--rows", "patterns", multiple=True, metavar="PATTERN", help="Only rows whose name matches, such as '*4096*'."
)
@click.option("--budget", type=Duration(), help="Skip rows that are not expected to end within this time, such as 8m.")
@click.option(
    "--resume/--fresh", default=True, show_default=True, help="Reuse rows that the same code measured on this machine."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("docs/results"),
    show_default=True,
    help="The folder of the rows.",
)
@click.option("--device", type=Choice(["cpu", "cuda"]), default="cpu", show_default=True, help="What is measured.")
@click.option("--sample", type=click.IntRange(min=1), help="The number of shapes to sample.")
@click.option("--rounds", type=click.IntRange(1, 1000), help="Interleaved rounds of a row.")
@click.option(
    "--sizes",
    type=click.IntRange(min=1),
    multiple=True,
    help="Only these sides of matrices (exact), features of models (compress), or inputs (blr).",
)
@click.option("--dtype", "dtypes", multiple=True, help="Only rows of this dtype.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random matrices.")
@click.option(
    "--measure",
    type=Choice(["energy", "shares", "gradients"]),
    help="In place of products' times: energy in J or times of gradients (ks, on a GPU), the share of linear layers "
    "(e2e_ks).",
)
@click.option(
    "--picture/--no-picture", default=True, show_default=True, help="Write a picture of all rows next to them."
)
@click.option("--dry-run", is_flag=True, help="List the rows and measure nothing.")
def command(
    suite: str | None,
    patterns: tuple[str, ...],
    budget: float | None,
    resume: bool,
    out: Path,
    device: str,
    sample: int | None,
    rounds: int | None,
    sizes: tuple[int, ...],
    dtypes: tuple[str, ...],
    seed: int,
    measure: str | None,
    picture: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Run a suite of benchmarks: interleaved, checked first, stored as rows.

    Without SUITE, list the suites. Contenders run in turn; results are checked before anything is timed;
    speed-ups are ratios of medians. Each row is added to OUT/SUITE-DEVICE.jsonl when it is measured, so
    an interrupted run loses one row at most. Exit code 1 when a row misses its bar; 3, and nothing is written, when
    no row can run here.
    """
    if suite is None:
        suites = {name: find_suite(name).help for name in suite_names()}
        if as_json:
            print_json(suites)
            return 0
        formatter = click.HelpFormatter()
        formatter.write_dl(list(suites.items()))
        click.echo(formatter.getvalue(), nl=False)
        return 0
    found = find_suite(suite)
    if measure is not None and measure not in found.flags:
        raise click.UsageError(f"suite {found.name} has no --measure {measure}")
    if sizes and not found.sized:
        raise click.UsageError(f"suite {found.name} has no --sizes")
    columns = found.columns if measure is None else found.flags[measure]
    options = Options(device, sample, rounds, dtypes, seed, sizes, measure or "")
    cases = chosen_cases(found, options, patterns)
    if dry_run and as_json:
        print_json([{"row": one.key, "seconds": one.seconds, "bars": [str(bar) for bar in one.bars]} for one in cases])
        return 0
    if dry_run:
        print_table(
            ("row", "about", "bars"),
            [(case.key, f"{case.seconds:.0f} s", ", ".join(map(str, case.bars))) for case in cases],
            prose=("bars",),
        )
        return 0
    if not found.name.startswith("search"):  # its walks need no torch
        Device(device).require()
    claim_folder(out)
    journal = Journal(out / f"{found.name}-{device}.jsonl")
    if not journal.rows():  # what stands beside rows was written with them
        for path in sorted(out.glob(f"{found.name}-{device}*")):
            claim(path)
    results = []
    with Progress() as progress:
        for row in run_cases(found, cases, options, journal, budget, resume, progress.update):
            results.append(row)
    if as_json:
        print_json(results)
    else:
        print_table(
            ("row", *columns, "bars", ""),
            [(row["key"], *(cell(row["figures"].get(name)) for name in columns), *_notes(row)) for row in results],
            stay=("", "bars"),
            prose=("", "bars"),
        )
    if results and all(row["refused"] for row in results):
        raise PlanError(f"no row of {found.name} can run here: {results[0]['refused']}")
    if not as_json:
        click.echo(f"{len(results)} of {len(cases)} rows; data in {journal.path}", err=True)
    if picture and results:
        found.draw(newest_rows(out, found.name, device), out / f"{found.name}-{device}.svg")
    return int(any(not met for row in results for _, met in row["bars"]))


def _notes(row: Mapping[str, Any]) -> tuple[str, str]:
    notes = [row["refused"] or "", "others were computing" if row["contended"] else ""]
    return bars_of(dict(row)), "; ".join(note for note in notes if note)
