"""The --start of a search: a scheme by name or file, the naive one, a composition, or the best of a smaller format."""

from __future__ import annotations

import re

from ..errors import TargetError
from ..schemes_db import Ring, Scheme, Target
from ..schemes_db.algebra import naive
from ..schemes_db.catalog import Catalog
from ..schemes_db.composition import best_composition, build
from ..search import common_products, kept_first
from ..search.improve.starts import best_below
from .schemes import scheme_argument


def start_argument(text: str, target: Target, ring: Ring) -> Scheme:
    """The scheme that walks for a target over a ring start from.

    `naive` and `compose` are the naive scheme and the best composition for the target; `best` is the
    kept scheme of the lowest rank for the largest format below the target; else a SCHEME.

    Raises:
        LcmaError: the text means nothing, or there is no such scheme.
    """
    if text == "naive":
        return naive(target)
    if text not in ("compose", "best"):
        return scheme_argument(text)[0]
    if not target.is_general:
        raise TargetError(f"--start {text} is for full products, not for {target}: name a scheme")
    with Catalog.open() as catalog:
        if text == "compose":
            part = best_composition(target.shape, catalog.best_ranks())
            return build(part, target.shape, lambda name: catalog.find(name)[0])
        found = best_below(catalog, target, ring)
    if found is None:
        raise TargetError(f"the catalogue has no scheme below {target} to start from: name one, or leave --start out")
    return found


def keep_argument(text: str, start: Scheme) -> tuple[Scheme, int]:
    """The start with the products that --keep names in front, and how many they are.

    Products are named as `lcma show` does (m1,m4), or by a SCHEME whose products stay, as far as the
    start has them.

    Raises:
        LcmaError: the start has no such products, or no others.
    """
    if re.fullmatch(r"m\d+(,m\d+)*", text.replace(" ", "")):
        places = [int(name) - 1 for name in re.findall(r"\d+", text)]
    else:
        other = scheme_argument(text)[0]
        places = common_products(start, other)
        if not places:
            raise TargetError(f"the start has no product of {other!r} to keep: `lcma show` names its own")
    return kept_first(start, places), len(set(places))
