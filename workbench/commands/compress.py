"""`lcma compress`"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ...errors import PlanError
from ...kernels.compressed_files import FinishedLayers
from ...kernels.compression import CompressConfig
from .. import compression
from ..compression import Task
from ..destination import claim
from ..help import lcma_command
from ..matrix_files import file_of
from ..options import Choice, argument, option
from ..output import answer, print_table, wants_json
from ..products import DEVICE, Device
from ..progress import CountedProgress


@lcma_command
def command(
    *,
    model: Path = argument("MODEL.safetensors"),
    out: Path | None = option(metavar="OUT.safetensors"),
    what: str = option("--kind", metavar="WHAT", default="low-rank"),
    layers: tuple[str, ...] = option("--layer", metavar="NAME=WHAT"),
    layout: str = option(type=Choice(compression.LAYOUTS), default="auto"),
    calibration: str | None = option(metavar="X"),
    batch: int = option(type=click.IntRange(1, 1 << 20), default=1024),
    measure: bool = option(),
    rounds: int = option(type=click.IntRange(1, 1000), default=7),
    device: Device = option(default="cpu", type=DEVICE),
    resume: bool = option("--resume/--fresh", default=True),
    dry_run: bool = option(),
) -> None:
    if out is None and not dry_run:
        raise click.UsageError("name the compressed model: --out OUT.safetensors, or give --dry-run")
    if out is not None:
        if out.suffix != ".safetensors":
            raise click.UsageError(f"--out {out} must end in .safetensors")
        claim(out, [model, *([] if calibration is None else [file_of(calibration)])])
    try:
        rest = CompressConfig.parse(what)
        chosen = dict(_layer(text) for text in layers)
    except PlanError as error:
        raise click.UsageError(str(error)) from None
    for pattern in compression.EMBEDDINGS:
        chosen.setdefault(pattern, None)
    chosen.setdefault("*", rest)
    tasks = compression.planned(compression.stored_weights(model, layout), chosen)
    compression.check_finite(model, tasks)
    if dry_run or out is None:
        _show_tasks(tasks)
        return
    if (reason := tasks[0].reason) and all(task.reason for task in tasks):
        raise PlanError(f"no layer would change: {tasks[0].weight.layer}: {reason}; lcma compress --dry-run shows all")
    inputs = {} if calibration is None else compression.calibration_inputs(calibration, tasks)
    if device.kind == "cuda":
        device.require()
    store = FinishedLayers(out.with_name(f"{out.name}.layers"))
    work = compression.Compression(model, tasks, device, store, resume)
    reports = []
    with device.current(), CountedProgress(len(tasks)) as progress:
        for report in work.run(inputs, batch, rounds if measure else None, progress.update):
            reports.append(report)
            progress.step()
    work.write(out)
    about = {"model": str(model), "out": str(out), "batch": batch, "device": str(device), "resumed": work.resumed}
    answer({**about, "layers": [asdict(report) for report in reports]}, lambda: compression.show_layers(reports))
    if not wants_json():
        click.echo(f"wrote {out}" + (f"; {work.resumed} layers were finished before" if work.resumed else ""), err=True)


def _layer(text: str) -> tuple[str, CompressConfig | None]:
    name, mark, what = text.partition("=")
    if not mark or not name:
        raise click.UsageError(f"--layer {text!r} must be NAME=WHAT, such as 'h.*.attn.*=monarch:blocks=8'")
    return name, CompressConfig.parse(what)


def _show_tasks(tasks: Sequence[Task]) -> None:
    rows: list[dict[str, Any]] = [
        {
            "layer": task.weight.layer,
            "outputs": task.weight.shape[0],
            "inputs": task.weight.shape[1],
            "layout": "conv1d" if task.weight.turned else "linear",
            "structures": [structure.name for structure in task.structures],
            "skipped": task.reason,
        }
        for task in tasks
    ]
    shown = []
    for row in rows:
        names = row["structures"]
        found = names[0] if len(names) == 1 else f"the nearest of {len(names)}, such as {names[0]}" if names else ""
        shown.append([*list(row.values())[:4], row["skipped"] or found])
    columns, sentence = ("layer", "outputs", "inputs", "layout", "structure"), ("structure",)
    answer({"layers": rows}, lambda: print_table(columns, shown, stay=sentence, prose=sentence))
