"""`lcma time`"""

from __future__ import annotations

import platform
from dataclasses import asdict
from typing import Any

import click

from ...kernels import Request
from ...schemes_db.catalog import Catalog
from ..contenders import Result, contest_of
from ..help import lcma_command
from ..options import argument, group, option
from ..output import answer, print_figures, wants_json
from ..product_options import ProductOptions, reject
from ..products import Device, causal_name, sizes_of
from ..progress import Progress
from ..schemes import AUTO, scheme_argument


@lcma_command
def command(
    *,
    scheme: str = argument("SCHEME|auto|K"),
    named: str | None = option("--scheme", metavar="SCHEME"),
    sizes: tuple[str, ...] = argument("[SIZE|M K N]"),
    levels: tuple[int, ...] = option(type=click.IntRange(1, 6)),
    product: ProductOptions = group(ProductOptions),
    rounds: int = option(type=click.IntRange(1, 1000), default=7),
    record: bool = option(),
) -> None:
    device, strategy = product.device, product.strategy
    matrix = product.factored([scheme], record=record)
    digest: str | None = None
    factors: Any = None
    if matrix is not None:
        text = AUTO if named is None else named
        if text == AUTO and levels:
            raise click.UsageError("--levels is for a scheme that is named")
        if sizes:
            raise click.UsageError("a product by a stored matrix K takes --batch, no size")
        request = product.request_by(matrix)
        factors = matrix.astype(request.storage.name).factors if device.kind == "cpu" else None
        patterns = [one.sizes for one in matrix.patterns]
        layout = product.layout or "bsf"
        about: dict[str, Any] = {"structure": matrix.structure.name, "kronecker": patterns, "layout": layout}
        about["size"] = request.shape
    else:
        if named not in (None, scheme) and scheme != AUTO:
            raise click.UsageError(f"SCHEME is {scheme} and --scheme is {named}; give one of them")
        text = named or scheme
        if text == AUTO and (levels or record):
            option = "--levels" if levels else "--record"
            raise click.UsageError(f"{option} is for a scheme that is named, not for auto")
        if product.ring is not None:
            reject("--ring", record=record)
        if len(sizes) not in (0, 1, 3):
            raise click.UsageError("give one SIZE (512, 512x256x128), or three sizes M K N")
        shape = sizes_of("x".join(sizes) or "2048", causal_name(product.causal))
        request = product.request(shape)
        if text != AUTO and (record or not product.causal):
            digest = scheme_argument(text.split("/")[0])[0].digest
        ring = None if product.ring is None else product.ring.name
        about = {"size": shape, "causal": product.causal, "ring": ring, "digest": digest}
    device.require()
    with device.current(), Progress() as progress:
        contest = contest_of(request, text, levels or (1,), strategy, 0, factors)
        found = contest.run(rounds, progress.update)
    if record and digest is not None:
        _record(digest, found, request)
    about |= {"dtype": request.dtype, "precision": request.precision, "device": str(device)}
    about |= {"batch": product.batch, "rounds": rounds}
    _show(found, request, about, device)


def _show(found: Result, request: Request, data: dict[str, Any], device: Device) -> None:
    facts = asdict(found)
    answer({**data, **facts}, lambda: print_figures("times", facts["rows"]))
    if wants_json():
        return
    click.echo(f"{request} on {device}; ratios are to {found.baseline}; basis of the plan: {found.basis}")
    if found.gpu is not None:
        click.echo(f"{device}: {found.gpu}")
    if found.disturbed:
        click.echo(f"other processes used {found.busy_share:.0%} of the processors meanwhile", err=True)


def _record(digest: str, found: Result, request: Request) -> None:
    with Catalog.open() as catalog:
        if catalog.path is None:
            click.echo("not recorded: the catalogue can't be written", err=True)
            return
        for row in found.rows:
            if not row.is_baseline:
                detail: dict[str, Any] = {"dtype": request.arithmetic, "size": list(request.shape), **asdict(row)}
                label = f"ratio to {found.baseline}, {row.what}"
                catalog.measure(digest, label, row.ratio, "x", platform.node(), detail)
