"""The start of a search: a scheme by name, the naive one, a composition, or the best of a smaller format."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..errors import TargetError
from ..schemes_db import Kind, Ring, Scheme, Target, parse_target
from ..schemes_db.algebra import naive
from ..schemes_db.catalog import Catalog
from ..schemes_db.composition import MAX_SIDE, best_composition, build, oriented
from ..schemes_db.recipes import in_order, shape_text
from ..verify import certify
from .format_moves.corners import restricted
from .runs.bounds import common_products, kept_first
from .runs.objectives import score_of
from .runs.plan import formats_below

Named = Callable[[str], Scheme]
"""Finds the scheme that a text names, and proves it."""


def start_scheme(text: str, target: Target, ring: Ring, named: Named) -> Scheme:
    """The scheme that walks for a target over a ring start from.

    `naive` and `compose` are the naive scheme and the best composition for the target; `best` is the
    kept scheme of the lowest rank for the largest format below the target; else what `named` finds.

    Raises:
        LcmaError: the text means nothing, or there is no such scheme.
    """
    if text == "naive":
        return naive(target)
    if text not in ("compose", "best"):
        return named(text)
    if not target.is_general:
        raise TargetError(f"start {text} is for full products, not for {target}: name a scheme")
    with Catalog.open() as catalog:
        if text == "compose":
            part = best_composition(target.shape, catalog.best_ranks())
            return build(part, target.shape, lambda name: catalog.find(name)[0])
        found = best_below(catalog, target, ring)
    if found is None:
        raise TargetError(f"the catalogue has no scheme below {target} to start from: name one, or start from naive")
    return found


def best_below(catalog: Catalog, target: Target, ring: Ring) -> Scheme | None:
    """Return the lowest stored scheme, over Z (or Z2 if `ring` is), of the largest stored format below a target."""
    rings = ("Z2", "Z") if ring.name == "Z2" else ("Z",)
    for name in reversed(formats_below(target)):
        shape = parse_target(name).shape
        entries = [entry for entry in catalog.entries(target=shape_text(in_order(shape))) if entry.ring in rings]
        if entries:
            best = min(entries, key=lambda entry: (entry.rank, entry.additions, entry.digest))
            return oriented(catalog.find(best.digest)[0], shape)
    return None


def is_mask(target: Target) -> bool:
    """Return whether a target is a product of matrices some blocks of which are left out or half, B not being A^T."""
    return target.is_product and not target.is_general and not target.shared


def mask_start(target: Target, ring: Ring) -> Scheme | None:
    """The best scheme of the full product on a mask's grid, restricted to the blocks wanted, if it costs less.

    None where the products of the target's own blocks cost no more, a half product as half of one.
    """
    absent = any((kinds == Kind.ABSENT).any() for kinds in target.kind_arrays)
    if not absent or max(target.shape) > MAX_SIDE:
        return None
    with Catalog.open() as catalog:
        part = best_composition(target.shape, catalog.best_ranks())
        whole = build(part, target.shape, lambda name: catalog.find(name)[0])
    found = restricted(whole, target)
    if ring.characteristic == 2:
        found = found.over_z2() or found
    certify(found)
    return found if score_of("cost", found) < score_of("cost", naive(target)) else None


def with_kept_first(text: str, start: Scheme, named: Named) -> tuple[Scheme, int]:
    """The start with the products that a text names in front, and how many they are.

    Products are named as `lcma show` does (m1,m4), or by a scheme whose products stay, as far as the
    start has them.

    Raises:
        LcmaError: the start has no such products, or no others.
    """
    if re.fullmatch(r"m\d+(,m\d+)*", text.replace(" ", "")):
        places = [int(name) - 1 for name in re.findall(r"\d+", text)]
    else:
        other = named(text)
        places = common_products(start, other)
        if not places:
            raise TargetError(f"the start has no product of {other!r} to keep: `lcma show` names its own")
    return kept_first(start, places), len(set(places))
