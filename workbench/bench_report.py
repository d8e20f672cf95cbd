"""The rows of benchmarks as a page of Markdown: what was measured, how, and on which machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .bench.journal import Journal, Row
from .bench.runner import find_suite, suite_names
from .output import cell, markdown_table

MAX_ROWS = 400
"""Rows of one suite that the page shows; the file has all."""

INTRODUCTION = """# Benchmarks

This page is generated from the rows in `docs/results` (JSON lines, one a measured case). Contenders run in turns, what
they compute is checked before anything is timed, and ratios are those of medians to the best library on the same cores
or GPU: more than 1 is faster. *Interval* is the 95% interval over paired rounds. A newer row of the same name replaces
an older one.
"""

FIRST = "hand"
"""The suite whose rows come first."""


def benchmarks_page(results: Path) -> str:
    """A section for each file of rows: what a new user gets first, then the other suites in alphabetical order.

    Raises:
        SchemeFormatError: a line of a file is not a row.
    """
    parts = [INTRODUCTION]
    for suite in sorted(suite_names(), key=lambda name: name != FIRST):
        for device in ("cpu", "cuda"):
            if rows := newest_rows(results, suite, device):
                parts.append(_section(suite, device, rows))
    return "\n".join(parts)


def newest_rows(results: Path, suite: str, device: str) -> list[Row]:
    """The newest row of every key of a suite on a device."""
    return list(Journal(results / f"{suite}-{device}.jsonl").newest().values())


def about_rows(suite: str, device: str, rows: Sequence[Row]) -> list[str]:
    """A list of Markdown: the command of rows, when and where they were measured, and their file."""
    command = f"lcma bench {suite}" + (" --device cuda" if device == "cuda" else "")
    dates = sorted(row["date"][:10] for row in rows if row.get("date"))
    span = dates[0] if dates and dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}" if dates else "unknown"
    return [
        f"- command: `{command}`",
        f"- measured: {span}",
        *(f"- machine: {machine}" for machine in dict.fromkeys(_machine(row.get("machine") or {}) for row in rows)),
        f"- data: `docs/results/{suite}-{device}.jsonl`, {len(rows)} rows",
    ]


def _section(suite: str, device: str, rows: Sequence[Row]) -> str:
    found = find_suite(suite)
    columns = [name for name in found.columns if any(row["figures"].get(name) is not None for row in rows)]
    table = markdown_table(
        ("row", *columns, "bar"),
        [
            (
                row["key"],
                *(cell(row["figures"].get(name)) for name in columns),
                "; ".join(filter(None, (bars_of(row), notes_of(row)))) or None,
            )
            for row in rows[:MAX_ROWS]
            if not row.get("refused")
        ],
    )
    lines = [
        f"## {suite}, {'GPU' if device == 'cuda' else 'processor'}",
        f"{found.help}\n",
        *about_rows(suite, device, rows),
        "",
        *found.report(rows),
        table,
        "",
    ]
    return "\n".join(lines)


def _machine(machine: Mapping[str, Any]) -> str:
    """The processor, the accelerator and the versions that matter for speed."""
    versions = machine.get("versions") or {}
    names = ", ".join(f"{name} {versions[name]}" for name in ("python", "numpy", "torch", "triton") if name in versions)
    parts = [f"{machine.get('processor', 'unknown')}, {machine.get('cores', '?')} cores"]
    if machine.get("accelerator"):
        parts.append(str(machine["accelerator"]))
    return "; ".join([*parts, names])


def notes_of(row: Row) -> str:
    """What there is to say of a row: why it was refused, and whether others were computing."""
    return "; ".join(filter(None, (row.get("refused"), "others were computing" if row.get("contended") else "")))


def bars_of(row: Row) -> str:
    """Whether a row meets its bars."""
    return "; ".join(f"{text} {'met' if met else 'MISSED'}" for text, met in row.get("bars") or [])
