"""The rows of benchmarks as pages of Markdown: all of them, and those of block low-rank layers and models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from .bench.journal import Journal, Row
from .bench.runner import find_suite, suite_names
from .bench.workloads import KINDS
from .output import cell, columns_of, figure, figure_at, form_text, markdown_table, page, titled

MAX_ROWS = 400
"""Rows of one suite that the page shows; the file has all."""

FIRST = "hand"
"""The suite whose rows come first."""


def benchmarks_page(results: Path) -> str:
    """A section for each file of rows: what a new user gets first, then the other suites in alphabetical order.

    Raises:
        SchemeFormatError: a line of a file is not a row.
    """
    sections = (
        _section(suite, device, rows)
        for suite in sorted(suite_names(), key=lambda name: name != FIRST)
        for device in ("cpu", "cuda")
        if (rows := newest_rows(results, suite, device))
    )
    return page("benchmarks", sections="\n".join(sections).rstrip("\n"))


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


def block_low_rank_page(results: Path) -> str:
    """Return the page: a section for each file of rows of the suites blr, e2e_blr and compress.

    Raises:
        SchemeFormatError: a line of a file is not a row.
    """
    sections = []
    for suite, title, tables in (
        ("blr", "Layers", _layers),
        ("e2e_blr", "Models", lambda rows: {"models": _table("e2e_blr", rows)}),
        ("compress", "A compressed model", lambda rows: {"models": _table("compress", rows)}),
    ):
        for device, place in (("cuda", "a GPU"), ("cpu", "a processor")):
            if rows := [row for row in newest_rows(results, suite, device) if not row.get("refused")]:
                about = "\n".join(about_rows(suite, device, rows))
                filled = page(suite, counts=_counts(rows), **tables(rows)).strip()
                sections.append(f"## {title}, on {place}\n\n{about}\n\n{filled}")
    return page("block-low-rank", sections="\n\n".join(sections))


def _layers(rows: Sequence[Row]) -> dict[str, str]:
    speeds = ("layer", "n", "dense, ms", *(cell for kind in KINDS for cell in (kind, "compiled")))
    steps = ({"key": row["key"], "figures": step} for row in rows for step in row["figures"]["ablation"])
    return {
        "speeds": markdown_table(speeds, _speeds(rows)),
        "means": markdown_table(("n", *KINDS), _means(rows)),
        "plans": _table("plans", rows),
        "steps": _table("steps", steps),
    }


def _table(name: str, rows: Iterable[Row]) -> str:
    """A table of `columns_of`; in the path of a figure * is the row's kind."""
    columns = columns_of(name)
    return titled(name, ([_figure(row, one["figure"], one["form"]) for one in columns] for row in rows))


def _figure(row: Row, path: str, form: str) -> object:
    """The text of a figure of a row; nothing where the row lacks it."""
    found = {"key": row["key"], "bars": bars_of(row), **row["figures"]}
    return form_text(figure_at(found, path.replace("*", row["key"].split()[1]) if "*" in path else path), form)


def _speeds(rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    """The ratios of all kinds of a layer and a number of inputs side by side."""
    found: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        layer, kind, n, dtype = row["key"].rsplit(" ", 3)
        found.setdefault((layer if dtype in ("bfloat16", "float32") else f"{layer} {dtype}", n[2:]), {})[kind] = row[
            "figures"
        ]
    for (layer, n), kinds in found.items():
        dense = geometric_mean([one["ms"]["dense"] for one in kinds.values()])
        ratios = [kinds[kind]["ratios"] if kind in kinds else {} for kind in KINDS]
        cells = (figure(one.get(form), ".2f") for one in ratios for form in ("auto", "compiled"))
        yield layer, n, f"{dense:.3g}", *cells


def _means(rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    found: dict[int, dict[str, list[float]]] = {}
    for row in rows:
        _, kind, n, _ = row["key"].rsplit(" ", 3)
        found.setdefault(int(n[2:]), {}).setdefault(kind, []).append(row["figures"]["ratio"])
    for n, kinds in sorted(found.items()):
        yield n, *(f"{geometric_mean(kinds[kind]):.2f}" if kind in kinds else "" for kind in KINDS)


def _counts(rows: Sequence[Row]) -> str:
    """How many rows meet each bar."""
    met: dict[str, list[bool]] = {}
    for row in rows:
        for text, fine in row.get("bars") or []:
            met.setdefault(text, []).append(fine)
    counts = "; ".join(f"{text} in {sum(fine)} of {len(fine)} rows" for text, fine in met.items())
    return f"Bars: {counts}." if met else ""
