"""Output on stdout: tables for people, JSON and CSV for scripts."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import click

from ..schemes_db.names import visible


def print_json(data: Any) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(data, indent=2))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on stdout; numbers to the right; no colour off a terminal or with NO_COLOR."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(columns):
        numeric = all(isinstance(row[position], int | float) for row in rows) and rows
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else visible(str(cell))) for cell in row))  # no markup is read
    width = None if sys.stdout.isatty() else 160
    Console(width=width).print(table)


def print_csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """The same rows as CSV on stdout."""
    writer = csv.writer(sys.stdout)
    writer.writerow(columns)
    writer.writerows([visible(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)


def ratio(value: Fraction) -> str:
    """A cost as a fraction with its decimal: 29/64 = 0.4531."""
    return f"{value} = {float(value):.4f}"
