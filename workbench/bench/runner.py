"""Running a suite: cases one after the other, within a budget, each row kept as soon as it is there."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator
from dataclasses import asdict
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any

from ...errors import PlanError, unknown_name
from ...kernels.cpu.bench import CpuLoadMonitor
from ...kernels.cuda.precompile import compile_ahead
from ...version import __version__
from ..output import data_rows
from .case import Case, Options, Say, Suite
from .journal import Journal, Row
from .machine import BUSY_SHARE, code_hash, machine

SUITES = {row["name"]: row for row in data_rows("suites")}
"""The suites: what `Suite` says of each, with the columns of the rows of its `measures`. The module of this name in
`suites` has the function `cases`, and a `picture` and a `report` where they are its own."""


def suite_names() -> list[str]:
    """The names of the suites, in order."""
    return list(SUITES)


def find_suite(name: str) -> Suite:
    """The suite of this name.

    Raises:
        PlanError: there is none.
    """
    name = name.replace("-", "_")
    if name not in SUITES:
        raise unknown_name("suite", name, SUITES)
    row, module = SUITES[name], import_module(f".suites.{name}", __package__)
    measures = (one.split(":") for one in row["measures"].split(";") if one)
    about: dict[str, Any] = {
        "columns": tuple(row["columns"].split()),
        "sources": tuple(row["sources"].split()),
        "flags": {what.strip(): tuple(columns.split()) for what, columns in measures},
        "sized": row["sized"] == "yes",
    }
    own = {part: getattr(module, part) for part in ("picture", "report") if hasattr(module, part)}
    return Suite(name, row["help"], module.cases, **about, **own)


def chosen_cases(suite: Suite, options: Options, patterns: tuple[str, ...] = ()) -> list[Case]:
    """The suite's cases for these options whose key fits one of the patterns (none: all).

    Raises:
        PlanError: nothing fits.
    """
    cases = [
        case
        for case in suite.cases(options)
        if not patterns or any(fnmatchcase(case.key, pattern) for pattern in patterns)
    ]
    if not cases:
        wanted = f" that fits {' or '.join(patterns)}" if patterns else " for these options"
        raise PlanError(f"suite {suite.name} has no row{wanted}; see lcma bench {suite.name} --dry-run")
    return cases


def run_cases(
    suite: Suite,
    cases: list[Case],
    options: Options,
    journal: Journal,
    budget: float | None = None,
    resume: bool = True,
    say: Say = lambda _: None,
) -> Iterator[Row]:
    """Run what is missing and yield the rows, old and new, in the order of the cases.

    With `resume`, a row that the same code made on the same machine is taken as it is. Kernels of
    all others are compiled first, side by side. A case is begun only if it should end within the
    budget (seconds, compilation included; the first one always is): in the time of its last row, or else
    of the longest case so far. A case that cannot run here gives a row with the reason under `refused`,
    which is not kept: the next run tries it anew.

    Raises:
        VerificationError: a case computes something wrong; nothing of it was timed.
    """
    code = code_hash((*suite.sources, "workbench/bench"))
    done = journal.done(code, machine()) if resume else {}
    done = {key: row for key, row in done.items() if row["options"] == _plain(options)}
    known, longest, began = seconds_of_rows(journal), 0.0, time.perf_counter()
    _compile([case for case in cases if case.key not in done], say)
    started = False
    for number, case in enumerate(cases, start=1):
        if case.key in done:
            yield done[case.key]
            continue
        spent = time.perf_counter() - began
        if budget is not None and started and spent + known.get(case.key, longest) > budget:
            continue
        started = True
        row = _measured(suite, case, options, code, f"{number}/{len(cases)} {case.key}", say)
        longest = max(longest, row["seconds"])
        if row["refused"] is None:  # what can't run here must not stand where another machine's figures do
            journal.append(row)
        yield row


def seconds_of_rows(journal: Journal) -> dict[str, float]:
    """The seconds that the newest rows took, by key: what the next ones are expected to take."""
    return {key: row["seconds"] for key, row in journal.newest().items() if "seconds" in row}


def _compile(cases: list[Case], say: Say) -> None:
    calls = [case.ahead for case in cases if case.ahead is not None]
    if not calls:
        return

    say(f"planning {len(calls)} rows")
    compile_ahead(calls, lambda compiled, kernels: say(f"{compiled} of {kernels} kernels compiled"))


def _measured(suite: Suite, case: Case, options: Options, code: str, place: str, say: Say) -> Row:
    say(place)
    monitor, began = CpuLoadMonitor(), time.perf_counter()
    figures, refused = {}, None
    try:
        figures = dict(case.run(lambda text: say(f"{place}: {text}")))
    except PlanError as error:
        refused = str(error)
    share = monitor.share()
    return {
        "suite": suite.name,
        "key": case.key,
        "figures": figures,
        "refused": refused,
        "bars": [[str(bar), bar.met(figures)] for bar in case.bars if refused is None],
        "busy_share": share,
        "contended": share > BUSY_SHARE,
        "seconds": time.perf_counter() - began,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "options": _plain(options),
        "code": code,
        "version": __version__,
        "machine": machine(),
    }


def _plain(options: Options) -> dict[str, object]:
    """The options as JSON gives them back."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(options).items()}
