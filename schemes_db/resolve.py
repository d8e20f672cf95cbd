"""From what a user types to a scheme: names, digests, targets, `naive:MxKxN` and compositions `A*B`."""

from __future__ import annotations

import re

from ..errors import CatalogError
from .algebra import naive, tensor
from .catalog import Catalog
from .certificate import Certificate
from .scheme import Scheme
from .shipped import shipped, shipped_names
from .target import parse_target


def resolve(name: str, catalog: Catalog | None = None) -> tuple[Scheme, Certificate | None]:
    """The scheme that a name means, with its certificate where one is kept.

    A name is a shipped or stored scheme's name, the first characters of a digest, a target such as
    `3x3x3` (the lowest rank in the catalogue over Z or Q, then the fewest additions),
    `naive:MxKxN`, or two of these joined by `*` (the tensor product, worked from the left).

    Raises:
        CatalogError: nothing has that name.
        TargetError: a target in it is not understood, or the composition is not possible.
    """
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


def _stored(name: str, catalog: Catalog) -> tuple[Scheme, Certificate]:
    if not re.fullmatch(r"\d+x\d+x\d+(:.+)?", name) or catalog.named(name):
        return catalog.find(name)
    target = parse_target(name).name
    entries = [entry for entry in catalog.entries(target=target) if entry.ring in ("Z", "Q")]
    if not entries:
        raise CatalogError(
            f"no scheme for {target} in the catalogue; try `lcma search {target}`, or use naive:{target}"
        )
    best = min(
        entries, key=lambda entry: (entry.full_products + entry.half_products / 2, entry.additions, entry.digest)
    )
    return catalog.find(best.digest)
