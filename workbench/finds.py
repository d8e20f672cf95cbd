"""Functions shared by the search commands: storing finds in the catalogue, and reporting them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import click

from ..schemes_db import Scheme
from ..schemes_db.algebra import naive
from ..schemes_db.catalog import Catalog
from ..schemes_db.composition import best_composition
from ..schemes_db.costs import additions, level_products, nonzeros
from ..search import Find, Result, score_of
from ..search.groups.product_rank import PREFIX
from ..search.improve.events import Kept


def best_finds(result: Result, count: int) -> Result:
    """Return the result with the best `count` finds: the last round may have found more."""
    if len(result.finds) <= count:
        return result
    if result.objective.startswith(PREFIX):
        return replace(result, finds=result.finds[-count:])
    best = sorted(result.finds, key=lambda found: (found.scheme.rank, sum(nonzeros(found.scheme))))
    return replace(result, finds=tuple(best[:count]))


def kept_line(event: Kept) -> str:
    """One line on a scheme that an improvement keeps."""
    scheme = event.scheme
    exact = not scheme.ring.characteristic
    ternary = ", ternary" if scheme.ternary and exact else ""
    if event.full is None:
        return f"found {scheme!r} {scheme.digest[:12]}{ternary}, certified, kept; rank {event.before} before"
    cost = f", {additions(scheme)} additions" if exact else ""
    return f"found {scheme!r} {scheme.digest[:12]}, {event.full} + {scheme.rank - event.full}{cost}, certified, kept"


def interrupt(saved: int, out: Path | None, otherwise: str) -> NoReturn:
    """End an interrupted run: print the number of saved schemes, and the command that resumes it, or what is lost."""
    further = f"to go on: lcma resume {shlex.quote(str(out))}" if out else otherwise
    click.echo(f"{saved} schemes saved in the catalogue; {further}", err=True)
    raise KeyboardInterrupt


def composition_line(result: Result) -> str | None:
    """Return the catalogue's composition of a full product, if it is better than all results of a run."""
    if not result.target.is_general:
        return None
    with Catalog.open() as catalog:
        part = best_composition(result.target.shape, catalog.best_ranks())
    near = [result.nearest.scheme.rank] if isinstance(result.nearest, Find) else []
    if part.rank >= min([*(scheme.rank for scheme in result.schemes), *near], default=part.rank + 1):
        return None
    return f"the catalogue has rank {part.rank}: lcma compose {result.target}"


def saving(result: Result, start: Scheme | None = None) -> str:
    """Return the saving of a run's best find over the blocks' own products, a half product counted as half of one."""
    plain = level_products(naive(result.target))
    near = [result.nearest.scheme] if isinstance(result.nearest, Find) else []
    composed = [start] if start is not None and start.provenance.kind == "composition" else []
    best = min(map(level_products, (*result.schemes, *near, *composed)), default=plain)
    products = "products of blocks" if result.target.block_recursive else "products"
    if best < plain:
        saved = f"{float(1 - best / plain):.1%}"
        return f"{result.target}: {float(best):g} {products} instead of {float(plain):g}, {saved} saved"
    return f"{result.target}: nothing below its own {float(plain):g} {products} was found"


def print_result(result: Result, kept: Iterable[str], start: Scheme | None = None) -> None:
    """The finds of a run, and what they and a composed start cost."""
    for step in result.lineage:
        click.echo(f"by way of {step.scheme!r} {step.scheme.digest[:12]}")
    for found, said in zip(result.finds, kept, strict=False):
        ternary = ", ternary" if found.scheme.ternary and not found.scheme.ring.characteristic else ""
        click.echo(f"found {found.scheme!r} {found.scheme.digest[:12]}{ternary}, certified, {said}")
    if isinstance(result.nearest, Find):
        near = result.nearest.scheme
        click.echo(f"the lowest was {near!r} {near.digest[:12]}, certified, {next(iter(kept))}")
    elif result.nearest is not None:
        click.echo(f"the lowest was {result.nearest.origin!r}, not lifted: {result.nearest.reason}")
    if result.objective.startswith(PREFIX) and result.finds:
        inner = result.objective.removeprefix(PREFIX)
        lowest = [str(score_of(result.objective, found.scheme)) for found in result.finds]
        click.echo(f"ranks of the products with {inner}: {', '.join(lowest)}")
    for lost in result.unlifted:
        click.echo(f"not lifted: {lost.origin!r}: {lost.reason}")
    if not result.target.is_general:
        click.echo(saving(result, start))
    ranks = ", ".join(f"{rank} ({walks} walks)" for rank, walks in sorted(result.ranks.items()))
    flips = f", {result.flips / 1e6:.2f} M flips ({result.flips_per_second / 1e6:.1f} M/s)" if result.flips else ""
    click.echo(
        f"{len(result.finds)} found in {result.seconds:.2f} s, {result.rounds} rounds{flips}; "
        f"lowest ranks: {ranks or 'the target was not reached'}"
    )
