"""`lcma structure`"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from ...errors import PlanError
from ...kernels.kronecker import save
from ...kernels.structured.approximation import ALGORITHMS
from ..destination import claim, writing
from ..help import lcma_command
from ..kronecker import LAYOUT, approximated, draw_errors, factorized, ranked_rows
from ..matrix_files import file_of, read_operand
from ..options import Choice, argument, option
from ..output import answer, print_figures, print_json, wants_json
from ..products import DEVICE, Device
from ..progress import Progress

DTYPES = ("float32", "float64")


@lcma_command
def command(
    *,
    weight: str = argument("W"),
    density: tuple[float, ...] = option(default=(0.5, 0.25, 0.125)),
    batch: int = option(type=click.IntRange(1, 1 << 20), default=4096),
    layout: str | None = option(type=LAYOUT),
    device: Device = option(default="cpu", type=DEVICE),
    top: int = option(type=click.IntRange(1, 1000), default=20),
    patterns: str | None = option(metavar="LIST"),
    by: str | None = option(type=Choice(["hierarchical", "alternating", "all"])),
    seed: int = option(default=0),
    out: Path | None = option(metavar="K.npz"),
    picture: Path | None = option(metavar="FILE.svg"),
) -> None:
    for path in (out, picture):
        claim(path, [file_of(weight)])
    operand = read_operand(weight)
    matrix = operand.widened()
    if matrix.ndim != 2 or matrix.dtype.kind != "f":
        raise PlanError(f"{weight} is {operand.dtype} of shape {matrix.shape}; a floating-point matrix is needed")
    matrix = np.array(matrix if matrix.dtype.name in DTYPES else matrix.astype(np.float32))
    if patterns is not None:
        if picture is not None:
            raise click.UsageError("--picture is for many lists; leave out --patterns")
        _one_list(matrix, patterns, by, seed, out, (batch, layout, device))
        return
    if by is not None or out is not None:
        raise click.UsageError("--by and --out are for the list of --patterns")
    with device.current(), Progress() as progress:
        rows = approximated(matrix, density, batch, layout, device, progress.update)
    if picture is not None:
        with writing(picture):
            draw_errors(rows, picture)
    rows = rows[:top]
    facts = {"weight": weight, "shape": matrix.shape, "batch": batch, "candidates": rows}
    answer(facts, lambda: print_figures("patterns", rows))


def _one_list(
    matrix: Any, patterns: str, by: str | None, seed: int, out: Path | None, product: tuple[int, str | None, Device]
) -> None:
    """Factorise by one list, show errors, seconds and the predicted speed, and store the nearest matrix."""
    batch, layout, device = product
    algorithms = ALGORITHMS if by in (None, "all") else (str(by),)
    with device.current(), Progress() as progress:
        rows, nearest = factorized(matrix, patterns, algorithms, seed, progress.update)
        (speed,) = ranked_rows([nearest.structure], batch, layout, matrix.dtype.name, device)
    if out is not None:
        save(out, nearest)
    if wants_json():
        print_json({"patterns": speed["patterns"], "shape": matrix.shape, "algorithms": rows, "speed": speed})
        return
    print_figures("algorithms", rows)
    print_figures("patterns", [speed])
    if out is not None:
        click.echo(f"wrote {out}", err=True)
