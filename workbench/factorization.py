"""A weight by the Kronecker-sparse factors of one list, by every algorithm: errors, seconds, and the nearest matrix."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import PlanError
from .output import cell, print_table

if TYPE_CHECKING:
    from ..kernels.kronecker import FactoredMatrix


def factorized(
    weight: Any, patterns: str, algorithms: Sequence[str], seed: int, say: Callable[[str], None]
) -> tuple[list[dict[str, Any]], FactoredMatrix]:
    """Error and seconds of each algorithm for a weight (rows, cols), the least error first, and the nearest matrix.

    One that does not take the list gives a row with the reason under "refused".

    Raises:
        PlanError: the text is no list of patterns of the weight's size, or no algorithm takes it.
    """
    from ..kernels.kronecker import factorize
    from ..kernels.structured.pattern import parse_patterns

    listed = parse_patterns(patterns)
    rows: list[dict[str, Any]] = []
    nearest: FactoredMatrix | None = None
    refusals = []
    for by in algorithms:
        began, row = time.perf_counter(), dict.fromkeys(("error", "bound", "least", "seconds", "refused"))
        rows.append({"by": by, **row})
        try:
            found = factorize(weight, listed, by, seed=seed, on_event=partial(_say, say, by))
        except PlanError as error:
            rows[-1]["refused"] = str(error)
            refusals.append(error)
            continue
        seconds = time.perf_counter() - began
        rows[-1] |= {"error": found.error, "bound": found.bound, "least": found.least, "seconds": seconds}
        if all(one["error"] is None or found.error <= one["error"] for one in rows):
            nearest = found.matrix
    if nearest is None:
        raise refusals[0]
    return sorted(rows, key=lambda row: (row["error"] is None, row["error"])), nearest


def _say(say: Callable[[str], None], by: str, line: str) -> None:
    say(f"{by}: {line}")


def show_factorized(rows: Sequence[dict[str, Any]]) -> None:
    """Print rows of `factorized`."""
    names = ("by", "error", "bound", "least", "seconds", "refused")
    cells = [[cell(row[name]) for name in names] for row in rows]
    print_table(names, cells, stay=("error", "refused"), prose=("refused",))
