"""`lcma structure`"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from ...errors import PlanError
from ..kronecker import LAYOUT, approximated, draw_errors, show_rows
from ..matrix_files import read_operand
from ..output import print_json
from ..products import DEVICE, Device
from ..progress import Progress

DTYPES = ("float32", "float64")


@click.command("structure")
@click.argument("weight", metavar="W")
@click.option(
    "--density", type=float, multiple=True, default=(0.5, 0.25, 0.125), show_default=True, help="Parameters at most."
)
@click.option("--batch", type=click.IntRange(1, 1 << 20), default=4096, show_default=True, help="Inputs of a product.")
@click.option("--layout", type=LAYOUT, help="Of inputs and results: batch first (default) or batch last.")
@click.option("--device", default="cpu", show_default=True, type=DEVICE)
@click.option("--top", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--picture", type=click.Path(path_type=Path), metavar="FILE.svg", help="Draw error against speed.")
@click.option("--json", "as_json", is_flag=True)
def command(
    weight: str,
    density: tuple[float, ...],
    batch: int,
    layout: str | None,
    device: Device,
    top: int,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Approximate a weight by Kronecker-sparse factors: error and predicted speed by pattern.

    W is a .npy file, or a tensor of a .safetensors file as FILE:TENSOR, of shape (outputs, inputs); the least error
    comes first. Half precision
    is read as float32. The lists of patterns are those of `suggest --structure kronecker`; factors are found by
    truncated SVDs of blocks, optimal for one and for two factors.
    """
    operand = read_operand(weight)
    matrix = operand.widened()
    if matrix.ndim != 2 or matrix.dtype.kind != "f":
        raise PlanError(f"{weight} is {operand.dtype} of shape {matrix.shape}; a floating-point matrix is needed")
    matrix = np.array(matrix if matrix.dtype.name in DTYPES else matrix.astype(np.float32))
    with device.current(), Progress() as progress:
        rows = approximated(matrix, density, batch, layout, device, progress.update)
    if picture is not None:
        draw_errors(rows, picture)
    if as_json:
        print_json({"weight": weight, "shape": matrix.shape, "batch": batch, "candidates": rows[:top]})
    else:
        show_rows(rows[:top])
