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


@lcma_command("time", json="the result")
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
    """Time a scheme, or the planner's choice, against the vendor's product: interleaved, checked first.

    Ratios are of medians over the rounds, with the 95% interval of the paired rounds; more than 1 means
    faster than the vendor's GEMM on the same device. For --causal the baselines are the whole product cut
    afterwards (vendor), strips and halving, and ratios are to the fastest of them. For a scheme with a
    triangular or masked target of its own the baseline is the whole product.

    With --dtype fp8 the baselines are the vendor's product in bfloat16, and the vendor's in e4m3 with block scales
    behind our kernels that quantise.

    --dtype int8 needs --max-abs; entries are drawn up to it, and results are int32. The baseline on a GPU is
    torch._int_mm, which gets a copy of B by columns where that is faster.

    With --ring the baseline is the exact product without a scheme (leaf).

    K is a file with a factored matrix, as for `run`. The baselines of a Kronecker-sparse one are the permuted batched
    GEMM (bmm), einsum, sparse formats (bsr, csr) and the dense matrix, of a block low-rank one GEMMs on views
    (strided), the papers' GEMMs between permutations (permuted) and the dense matrix, as far as they can run.
    """
    device, strategy = product.device, product.strategy
    matrix = product.factored([scheme], record=record)
    digest: str | None = None
    factors: Any = None
    about: dict[str, Any]
    if matrix is not None:
        text = AUTO if named is None else named
        if text == AUTO and levels:
            raise click.UsageError("--levels is for a scheme that is named")
        if sizes:
            raise click.UsageError("a product by a stored matrix K takes --batch, no size")
        request = product.request_by(matrix)
        factors = matrix.astype(request.storage.name).factors if device.kind == "cpu" else None
        patterns = [one.sizes for one in matrix.patterns]
        about = {"structure": matrix.structure.name, "kronecker": patterns, "layout": product.layout or "bsf"}
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
    about |= {
        "dtype": request.dtype,
        "precision": request.precision,
        "device": str(device),
        "batch": product.batch,
        "rounds": rounds,
    }
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
