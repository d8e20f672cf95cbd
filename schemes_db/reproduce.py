"""Make a scheme again by the steps of its provenance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import CatalogError, LcmaError
from .algebra import naive, reverse, rotate, tensor, transpose
from .constructions import change_of_basis, direct_sum, project
from .provenance import CONSTRUCTIONS, Step
from .ring import parse_ring
from .scheme import Scheme
from .target import parse_target

Find = Callable[[str], Scheme]
"""The kept scheme of a digest."""

Search = Callable[[Step], Scheme]
"""What a step that searches finds now."""


def reproduced(scheme: Scheme, find: Find, search: Search) -> Scheme:
    """The scheme that the steps of a provenance give now; compare its digest with that of the original.

    Raises:
        CatalogError: it has no steps, or one that can't be repeated; the message names it.
    """
    steps = scheme.provenance.history
    if not steps:
        raise CatalogError(f"{scheme!r} has no step in its provenance that could be repeated")
    made: dict[str, Scheme] = {}
    for number, step in enumerate(steps, start=1):
        try:
            result = _repeated(step, made, find, search)
        except LcmaError as error:
            raise CatalogError(f"step {number} ({step}) can't be repeated: {error}") from None
        if step.makes and result.digest != step.makes:
            raise CatalogError(f"step {number} ({step}) gives {result.digest[:12]} now")
        made[step.makes] = result
    return result


def _repeated(step: Step, made: dict[str, Scheme], find: Find, search: Search) -> Scheme:
    if step.do == "search":
        return search(step)
    if step.do not in CONSTRUCTIONS:
        raise CatalogError("the file is not kept" if step.do == "read" else "it was printed, not computed")
    parents = [made[digest] if digest in made else find(digest) for digest in step.of]
    wanted = {"naive": 0, "tensor": 2, "sum": 2}.get(step.do, 1)
    if len(parents) != wanted:
        raise CatalogError(f"it names {len(parents)} schemes, where {wanted} belong")
    match step.do:
        case "naive":
            return naive(parse_target(step.value("target"), files=False), parse_ring(step.value("ring")))
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
