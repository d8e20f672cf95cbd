"""From what a user types to a scheme: names, digests, targets, `naive:MxKxN` and compositions `A*B`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

from ..arguments import need
from ..errors import UnknownSchemeError
from .algebra import naive, permute, tensor
from .catalog import Catalog
from .certificate import Certificate
from .pareto import CatalogueRow
from .scheme import Scheme
from .shipped import shipped, shipped_names
from .target import parse_target

ORDERS = ("mkn", "mnk", "kmn", "knm", "nmk", "nkm")
"""The orders of three sizes, that of a target itself first."""


def resolve(name: str, catalog: Catalog | None = None) -> tuple[Scheme, Certificate | None]:
    """The scheme that a name means, with its certificate where one is kept.

    A name is a shipped or stored scheme's name, the first characters of a digest, a target such as
    `3x3x3` (the lowest rank over Z or Q, then the fewest additions), a target and a
    rank such as `4x4x4:47` (over Z or Q if there is one, else over another ring), `naive:MxKxN`, or two of
    these joined by `*` (the tensor product, computed from the left). A target means a shipped scheme if there is
    one, so that it is the same tomorrow; the user's own schemes of it have names and digests. A format whose sizes
    the catalogue has in another order is permuted: `5x4x8` from `4x5x8`.

    Raises:
        CatalogError: nothing has that name.
        TargetError: a target in it is not understood, or the composition is not possible.
    """
    need(str, name=name)
    need(Catalog | None, catalog=catalog)
    parts = [part.strip() for part in name.split("*")]
    if len(parts) > 1:
        scheme, certificate = resolve(parts[0], catalog)
        for part in parts[1:]:
            scheme, certificate = tensor(scheme, resolve(part, catalog)[0]), None
        return scheme, certificate
    if name.startswith("naive:"):
        return naive(parse_target(name.removeprefix("naive:"))), None
    if name in shipped_names():
        reading = shipped(name)
        return reading.scheme, reading.certificate
    if catalog is None:
        with Catalog.open() as opened:
            return _stored(name, opened)
    return _stored(name, catalog)


def _stored(name: str, catalog: Catalog) -> tuple[Scheme, Certificate | None]:
    if not re.fullmatch(r"\d+x\d+x\d+(:.+)?", name):
        return catalog.find(name)
    entry, order = entry_of(name, catalog)
    scheme, certificate = catalog.find(entry.digest)
    return (scheme, certificate) if order == ORDERS[0] else (permute(scheme, order), None)


def entry_of(name: str, catalog: Catalog) -> tuple[CatalogueRow, str]:
    """The row that a target, or a target and a rank, means, and the order of sizes in which it is that of the name.

    Raises:
        UnknownSchemeError: there is none.
    """
    form, _, rank = name.rpartition(":")
    target = parse_target(form if rank.isdecimal() else name)
    wanted = int(rank) if rank.isdecimal() else None
    orders = ORDERS if target.is_general else ORDERS[:1]
    for origin, order in product(("shipped", "user"), orders):
        sizes = dict(zip(order, target.shape, strict=True))
        stored = "{m}x{k}x{n}".format(**sizes) if target.is_general else target.name
        entry = _best(catalog.entries(target=stored, origin=origin), wanted)
        if entry is not None:
            return entry, order
    what = f"{target.name} of rank {wanted}" if wanted is not None else target.name
    raise UnknownSchemeError(
        f"no scheme for {what} in the catalogue; try `lcma search {target.name}`, or use naive:{target.name}"
    )


def _best(entries: Iterable[CatalogueRow], rank: int | None) -> CatalogueRow | None:
    """The best entry of one target: of a given rank over Z or Q if there is one, else over another ring."""
    kept = [entry for entry in entries if rank in (None, entry.rank)]
    rational = [entry for entry in kept if entry.ring in ("Z", "Q")]
    if rank is None or rational:
        kept = rational
    return min(
        kept,
        key=lambda entry: (entry.full_products + entry.half_products / 2, entry.additions, entry.digest),
        default=None,
    )
