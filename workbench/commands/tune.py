"""`lcma tune`"""

from __future__ import annotations

import csv
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ...errors import LcmaError, PlanError, SchemeFormatError
from ...kernels import Machine, Plan, Request, decision_for, machine_for, strategies, tune
from ...kernels.cpu.bench import CpuLoadMonitor
from ...kernels.cuda.bench import CudaBench
from ...kernels.planning.planner import Tuned, candidates
from ..bench.machine import BUSY_SHARE
from ..help import lcma_command
from ..options import DURATION, argument, group, option
from ..output import answer, print_figures
from ..product_options import ProductOptions
from ..products import Sizes, causal_name, require_memory, sizes_given
from ..progress import CountedProgress


@lcma_command
def command(
    *,
    arguments: tuple[str, ...] = argument("[M K N|K]"),
    file: Path | None = option("--from", metavar="SHAPES.csv"),
    product: ProductOptions = group(ProductOptions, "strategy"),
    top: int = option(type=click.IntRange(1, 64), default=6),
    rounds: int = option(type=click.IntRange(1, 1000), default=7),
    budget: float | None = option(type=DURATION),
    again: bool = option(),
) -> None:
    if (file is None) == (not arguments):
        raise click.UsageError("give three sizes M K N, a file K, or --from SHAPES.csv")
    if (matrix := product.factored(arguments)) is not None:
        requests = [product.request_by(matrix)]
    else:
        rows = read_shapes(file) if file is not None else [ShapeRow(sizes_given(arguments, 1))]
        requests = [product.request(row.sizes, row.dtype, row.causal) for row in rows]
    product.device.require()
    monitor = CpuLoadMonitor()
    results: list[dict[str, Any]] = []
    with product.device.current(), CountedProgress(len(requests)) as progress:
        _precompile(requests, top, again, progress)
        began, longest = time.perf_counter(), 0.0
        for request in requests:
            start = time.perf_counter()
            if budget is not None and results and start - began + longest > budget:
                break
            results.append(_tuned(request, top, rounds, again, progress))
            longest = max(longest, time.perf_counter() - start)
            progress.step()
    share = monitor.share()
    if share > BUSY_SHARE and any(one["candidates"] for one in results):
        click.echo(
            f"other processes used {share:.0%} of the processors meanwhile; tune --again when they are idle", err=True
        )
    if len(results) < len(requests):
        click.echo(f"{len(results)} of {len(requests)} products; the same command continues from there", err=True)
    answer(results, lambda: _show(results))
    if all(one["refused"] for one in results):
        raise PlanError(str(results[0]["refused"]))


def _precompile(requests: list[Request], top: int, again: bool, progress: CountedProgress) -> None:
    """Compile the kernels of all products that are not measured yet side by side: one after the other takes minutes."""
    pending = [request for request in requests if again or _measured(request) is None]
    if len(pending) < 2 or pending[0].device == "cpu" or pending[0].ring is not None:
        return

    progress.update(f"compiling kernels of {len(pending)} products")
    plans: list[Plan] = []
    for request in pending:
        with suppress(PlanError):  # tuning it gives the reason
            plans += candidates(request, machine_for(request), strategies(request.device, request.family), top)
    CudaBench().precompile(plans, progress.update)


def _measured(request: Request) -> str | None:
    """The day on which a product of this class and these sizes was measured; None: it was not."""
    wisdom = machine_for(request).wisdom
    record = wisdom.record(request) if wisdom is not None else None
    return None if record is None else record.when


def require_prices(request: Request, machine: Machine) -> None:
    """Raise a PlanError if a GPU's profile does not price the baseline of a product: candidates have no order then.

    Rates of the dtype itself are not needed: int8, halves and exact products are priced by those of others.
    """
    if request.device == "cuda" and decision_for(request, machine=machine).baseline.seconds is None:
        mend = "run lcma doctor --profile --device cuda first"
        raise PlanError(f"profile {machine.profile.id} has no rates of {request.arithmetic} products: {mend}")


def _tuned(request: Request, top: int, rounds: int, again: bool, progress: CountedProgress) -> dict[str, Any]:
    """Tune one product: its candidates by time; none where it was measured before, or cannot be."""
    progress.update(str(request))
    found: dict[str, Any] = {"request": str(request), "sizes": request.shape}
    found |= {"dtype": request.dtype, "precision": request.precision}
    found |= {"device": request.device, "skipped": None, "refused": None, "candidates": []}
    try:
        machine = machine_for(request)
        require_prices(request, machine)
        day = _measured(request)
        if day is not None and not again:
            return {**found, "skipped": f"measured {day}"}
        require_memory(request)
        say = progress.update
        tuned = tune(request, top=top, rounds=rounds, on_event=lambda text: say(f"{request}: {text}"))
    except PlanError as error:
        return {**found, "refused": str(error)}
    except OSError as error:
        raise LcmaError(f"the times can't be stored: {error.strerror}; set LCMA_HOME to a folder of your own") from None
    return {**found, "candidates": [_figures(one) for one in tuned]}


def _figures(one: Tuned) -> dict[str, Any]:
    return {
        "candidate": str(one.plan.candidate),
        "strategy": one.plan.candidate.strategy,
        "method": one.plan.candidate.method,
        "median_s": one.seconds,
        "quartiles_s": one.quartiles,
        "ratio": one.ratio,
        "predicted_s": one.plan.seconds,
        "relative_error": one.error,
    }


def _show(results: list[dict[str, Any]]) -> None:
    rows: list[dict[str, Any]] = []
    for one in results:
        found = one["candidates"] or [{"candidate": one["skipped"] or f"refused: {one['refused']}"}]
        rows += [{"request": "" if place else one["request"], **figures} for place, figures in enumerate(found)]
    print_figures("tuned", rows)


MOST_SHAPES = 100_000
"""A longer file is not read: nobody measures so many."""

NEEDED, KNOWN = ("m", "k", "n"), ("m", "k", "n", "dtype", "causal")


@dataclass(frozen=True)
class ShapeRow:
    """One product; None where the file leaves a column to the command's options."""

    sizes: Sizes
    dtype: str | None = None
    causal: str | None = None


def read_shapes(path: Path) -> list[ShapeRow]:
    """The products of a CSV file with a header.

    Raises:
        SchemeFormatError: the file cannot be read, lacks a column, or a row is no product.
    """
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, skipinitialspace=True)
            columns = [name.strip() for name in reader.fieldnames or ()]
            faults = [f"lacks the column {name}" for name in sorted(set(NEEDED) - set(columns))]
            faults += [f"has an unknown column {name[:40]!r}" for name in sorted(set(columns) - set(KNOWN))]
            if faults:
                raise SchemeFormatError(f"{faults[0]}; the first line must be m,k,n[,dtype,causal]", path, 1)
            reader.fieldnames = columns
            found: list[ShapeRow] = []
            for row in reader:
                if len(found) == MOST_SHAPES:
                    raise SchemeFormatError(f"has more than {MOST_SHAPES} products", path)
                found.append(_row(row, path, reader.line_num))
    except OSError as error:
        raise SchemeFormatError(f"can't be read: {error.strerror or error}", path) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise SchemeFormatError(f"is no CSV file: {error}", path) from None
    if not found:
        raise SchemeFormatError("names no product", path)
    return found


def _row(row: Mapping[str | None, str | None], path: Path, line: int) -> ShapeRow:
    texts = [(row.get(name) or "").strip() for name in NEEDED]
    if None in row or not all(text.isascii() and text.isdigit() and 1 <= int(text) < 1 << 31 for text in texts):
        raise SchemeFormatError("m, k and n must be whole numbers from 1", path, line)
    m, k, n = map(int, texts)
    dtype, causal = ((row.get(name) or "").strip() or None for name in ("dtype", "causal"))
    if causal is not None and causal_name(causal.lower()) is None:
        raise SchemeFormatError(f"causal is {causal[:20]!r}; write qk, pv, dv, dp, dq or dk", path, line)
    return ShapeRow((m, k, n), dtype, causal and causal.lower())
