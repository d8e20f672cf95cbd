"""Rows of `lcma bench` that name a scheme, for its page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..bench.journal import Row
from ..figures.canvas import rows_of
from .facts import Measured, shown

Benchmarks = dict[str, list[Measured]]
"""Measurements by the name of a scheme."""


def benchmarks(results: Path) -> Benchmarks:
    """The newest rows of every file of a folder of results, by the names that they hold.

    Raises:
        SchemeFormatError: a file holds what is not a row.
    """
    found: Benchmarks = {}
    for path in sorted(results.glob("*.jsonl")):
        for key, row in rows_of(results, path.stem).items():
            for name, one in _measured(key, row):
                found.setdefault(name, []).append(one)
    return found


def _measured(key: str, row: Row) -> Iterator[tuple[str, Measured]]:
    """Milliseconds of the contenders of a row, beside those of its baseline; or the error of the scheme it is of."""
    figures = row.get("figures") or {}
    times = figures.get("ms")
    what = f"{row['suite']}: {key}"
    if isinstance(times, dict):
        baseline = figures.get("baseline")
        beside = f"{baseline}: {times[baseline]:.4g} ms" if baseline in times else ""
        for name, milliseconds in times.items():
            yield name, _figure(what, f"{milliseconds:.4g} ms", "" if name == baseline else beside, row)
    elif "error" in figures and "classical_error" in figures:
        name, _, setting = key.partition(" ")
        value, beside = f"{figures['error']:.3g} error", f"classical: {figures['classical_error']:.3g}"
        yield name, _figure(f"{row['suite']}: levels and dtype {setting}", value, beside, row)


def _figure(what: str, value: str, beside: str, row: Row) -> Measured:
    machine, on_gpu = row.get("machine") or {}, (row.get("options") or {}).get("device") == "cuda"
    hardware = machine.get("accelerator" if on_gpu else "processor") or ""
    taken = row.get("date", "")[:10]
    return Measured(shown(what, 120), value, shown(beside, 60), shown(hardware, 60), shown(taken))
