"""What the search commands share: keeping finds in the catalogue, and saying what was found."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import click

from ..schemes_db import Scheme
from ..schemes_db.algebra import naive
from ..schemes_db.catalog import Catalog
from ..schemes_db.costs import full_and_half
from ..search import Find, Progress, Result
from ..verify import certify


def keep(result: Result, start: Scheme | None = None) -> list[bool]:
    """Store what a search found, with the steps and the start that it came from; for each find, whether it is new."""
    if result.finds and start is not None and start.provenance.kind == "composition":
        with Catalog.open() as catalog:
            catalog.add(start, certify(start))
    keep_finds(result.lineage)
    return keep_finds(result.finds)


def keep_finds(finds: Iterable[Find]) -> list[bool]:
    """Store finds and the schemes over Z2 that they were lifted from; for each, whether it is new."""
    fresh = []
    with Catalog.open() as catalog:
        for found in finds:
            if found.origin is not found.scheme:
                catalog.add(found.origin, found.origin_certificate)
            fresh.append(catalog.add(found.scheme, found.certificate))
    return fresh


def progress_line(standing: Progress) -> str:
    """One line on a run that goes on."""
    pools = " ".join(f"{rank}:{count}" for rank, count in list(standing.pools.items())[:6])
    return (
        f"{standing.target}: best rank {standing.rank}, round {standing.round}, "
        f"{rate_text(standing.flips_per_second)}, last gain {standing.seconds_since_gain:.0f} s ago, "
        f"{f'pools {pools}, ' if pools else ''}{standing.finds} found"
    )


def rate_text(rate: float) -> str:
    """Flips a second, in millions or, on a GPU, billions."""
    return f"{rate / 1e9:.2f} G flips/s" if rate >= 1e9 else f"{rate / 1e6:.1f} M flips/s"


def print_finds(finds: Iterable[Find], kept: Iterable[bool]) -> None:
    """One line a find."""
    for found, fresh in zip(finds, kept, strict=True):
        ternary = ", ternary" if found.scheme.ternary and not found.scheme.ring.characteristic else ""
        click.echo(
            f"found {found.scheme!r} {found.scheme.digest[:12]}{ternary}, certified, "
            f"{'kept' if fresh else 'known already'}"
        )


def saving(result: Result) -> str:
    """What the best find of a run saves against the blocks' own products, a half product counted as half of one."""
    plain = _cost(naive(result.target))
    best = min(map(_cost, result.schemes), default=plain)
    if best < plain:
        saved = f"{float(1 - best / plain):.1%}"
        return f"{result.target}: {float(best):g} products of blocks instead of {float(plain):g}, {saved} saved"
    return f"{result.target}: nothing below its own {float(plain):g} products of blocks was found"


def _cost(scheme: Scheme) -> Fraction:
    full, half = full_and_half(scheme)
    return full + Fraction(half, 2)


def print_result(result: Result, kept: Iterable[bool]) -> None:
    """The finds of a run, and what they cost."""
    for step in result.lineage:
        click.echo(f"by way of {step.scheme!r} {step.scheme.digest[:12]}")
    print_finds(result.finds, kept)
    for lost in result.unlifted:
        click.echo(f"not lifted: {lost.origin!r}: {lost.reason}")
    if not result.target.is_general:
        click.echo(saving(result))
    ranks = ", ".join(f"{rank} ({walks} walks)" for rank, walks in sorted(result.ranks.items()))
    click.echo(
        f"{len(result.finds)} found in {result.seconds:.2f} s, {result.rounds} rounds, "
        f"{result.flips / 1e6:.2f} M flips "
        f"({result.flips_per_second / 1e6:.1f} M/s); lowest ranks: {ranks or 'the target was not come to'}"
    )
