"""Make a scheme again by the steps of its provenance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import CatalogError, LcmaError
from .algebra import naive, reverse, rotate, tensor, transpose
from .constructions import change_of_basis, direct_sum, project
from .provenance import CONSTRUCTIONS, NEVER_REPEATED, Step
from .ring import Ring, parse_ring
from .scheme import Scheme
from .shared_factors import parse_groups
from .target import parse_target
from .uneven import uneven_product

Find = Callable[[str], Scheme]
"""The kept scheme of a digest."""

Search = Callable[[Step], Scheme]
"""Return the result of repeating a step that searches."""


Lift = Callable[[Scheme, Ring, int], Scheme]
"""The lift of a scheme over Z2 or Z3 to a ring, with a seed."""


def _no_lift(scheme: Scheme, ring: Ring, seed: int) -> Scheme:
    raise CatalogError("lifts are not at hand here")


def reproduced(
    scheme: Scheme,
    find: Find,
    search: Search,
    lift: Lift = _no_lift,
    on_skip: Callable[[int, Step], None] = lambda number, step: None,
) -> Scheme:
    """The scheme that the steps of a provenance give now; compare its digest with that of the original.

    A step that is not repeatable, and whose result `find` knows, is skipped, of which `on_skip` is told. The scheme
    itself modulo 2 is always known.

    Raises:
        CatalogError: it has no steps, or one that can't be repeated nor skipped; the message names it.
    """
    steps = scheme.provenance.history
    if not steps:
        raise CatalogError(f"{scheme!r} has no step in its provenance that could be repeated")
    mod2 = None if scheme.ring.characteristic or scheme.gaussian else scheme.over_z2()
    made: dict[str, Scheme] = {} if mod2 is None else {mod2.digest: mod2}
    for number, step in enumerate(steps, start=1):
        try:
            if not step.repeatable and step.makes:
                result = made[step.makes] if step.makes in made else find(step.makes)
                on_skip(number, step)
            else:
                result = _repeated(step, made, find, search, lift)
        except LcmaError as error:
            reason = error if step.repeatable else f"its result is not kept ({error})"
            raise CatalogError(f"step {number} ({step}) can't be repeated: {reason}") from None
        if step.makes and result.digest != step.makes:
            raise CatalogError(f"step {number} ({step}) gives {result.digest[:12]} now")
        made[step.makes] = result
    return result


def _repeated(step: Step, made: dict[str, Scheme], find: Find, search: Search, lift: Lift) -> Scheme:
    if not step.repeatable or step.do in NEVER_REPEATED:
        raise CatalogError("it is the last one, and is recorded as one that can't be")
    if step.do == "search":
        return search(step)
    if step.do not in (*CONSTRUCTIONS, "lift"):
        raise CatalogError("the file is not kept" if step.do == "read" else "it was printed, not computed")
    parents = [made[digest] if digest in made else find(digest) for digest in step.of]
    wanted = {"naive": 0, "tensor": 2, "sum": 2}.get(step.do, 1)
    if not parents if step.do == "uneven" else len(parents) != wanted:
        raise CatalogError(f"it names {len(parents)} schemes, where {wanted} belong")
    match step.do:
        case "naive":
            return naive(parse_target(step.value("target"), files=False), parse_ring(step.value("ring")))
        case "lift":
            seed = step.value("seed")
            return lift(parents[0], parse_ring(step.value("ring")), int(seed) if seed.isdecimal() else 0)
        case "rotate":
            return rotate(parents[0])
        case "transpose":
            return transpose(parents[0])
        case "reverse":
            return reverse(parents[0])
        case "tensor":
            return tensor(parents[0], parents[1])
        case "sum":
            return direct_sum(parents[0], parents[1], step.value("axis"))
        case "uneven":
            m, k, n = (tuple(_matrix(step.value(name))[0].tolist()) for name in "mkn")
            return uneven_product(parents[0], (m, k, n), parents[1:], parse_groups(step.value("groups")))
        case "project":
            index = step.value("index")
            return project(parents[0], step.value("axis"), int(index) if index.isdecimal() else -1)
        case _:
            p, q, r = (_matrix(step.value(name)) for name in "pqr")
            return change_of_basis(parents[0], p, q, r)


def _matrix(text: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The inverse of `matrix_text`.

    Raises:
        CatalogError: the text is no matrix of integers.
    """
    try:
        return np.array([[int(entry) for entry in row.split(",")] for row in text.split(";")], dtype=np.int64)
    except (ValueError, OverflowError):
        raise CatalogError(f"{text[:40]!r} is no matrix of integers") from None
