"""Factored operands of commands: stored matrices, their requests, and Kronecker-sparse patterns for a layer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import PlanError
from ..kernels import Request, decision_for
from ..kernels.factored import factored_request
from ..kernels.kronecker import FactoredMatrix, factorize
from ..kernels.precision import fields_of
from ..kernels.structured.chain import FactorChain, KroneckerSparse
from ..kernels.structured.constructions import LEAST_BLOCK, divisors, low_rank, pairs
from ..kernels.structured.pattern import Pattern, parse_patterns
from .bench.picture import new_figure, save
from .options import Choice
from .products import Device, machine_of

LAYOUT = Choice(["bsf", "bsl"])


def ranked_rows(
    structures: Sequence[FactorChain],
    batch: int,
    layout: str | None,
    dtype: str,
    device: Device,
    profile: str | None = None,
) -> list[dict[str, Any]]:
    """Figures of structures of one size: density, strategy, predicted seconds, and their ratio to the dense layer.

    The dense layer is X W^T by the vendor's product on the same machine.
    """
    rows, cols = structures[0].rows, structures[0].cols
    plain = Request(batch, cols, rows, device=device.kind, **fields_of(dtype))
    machine = machine_of(plain, profile)
    dense = decision_for(plain, strategy="vendor", machine=machine).plan.seconds
    found = []
    for structure in structures:
        request = factored_request(structure, batch, dtype, layout or "bsf", device=device.kind)
        decision = decision_for(request, machine=machine)
        seconds = decision.seconds
        found.append(
            {
                "patterns": "".join(map(str, structure.patterns)),
                "density": structure.density,
                "h": max(pattern.h for pattern in structure.patterns),
                "strategy": str(decision.plan.candidate),
                "basis": "measured" if decision.measured else "predicted",
                "seconds": seconds,
                "ratio": None if seconds is None or dense is None else dense / seconds,
            }
        )
    return sorted(found, key=lambda row: (row["seconds"] is None, row["seconds"]))


def approximated(
    weight: Any, densities: Sequence[float], batch: int, layout: str | None, device: Device, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Figures of the lists of patterns within some densities, each with the relative error of its factors for a weight.

    Raises:
        PlanError: the weight is no matrix of floats, or no list keeps to a density.
    """
    dtype = weight.dtype.name
    found = [structure for density in densities for structure in suggested(weight.shape[0], weight.shape[1], density)]
    rows = ranked_rows(list(dict.fromkeys(found)), batch, layout, dtype, device)
    for place, row in enumerate(rows, 1):
        say(f"{place} of {len(rows)}: {row['patterns']}")
        row["error"] = factorize(weight, parse_patterns(row["patterns"])).error
    return sorted(rows, key=lambda row: row["error"])


def factorized(
    weight: Any, patterns: str, algorithms: Sequence[str], seed: int, say: Callable[[str], None]
) -> tuple[list[dict[str, Any]], FactoredMatrix]:
    """Error and seconds of each algorithm for a weight (rows, cols), the least error first, and the nearest matrix.

    One that does not take the list gives a row with the reason under "refused".

    Raises:
        PlanError: the text is no list of patterns of the weight's size, or no algorithm takes it.
    """
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


def draw_errors(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the error of every list against its predicted ratio to the dense layer, as SVG.

    Raises:
        PlanError: matplotlib is not installed.
    """
    figure, axes = new_figure(8, 5)
    known = [row for row in rows if row["ratio"] is not None]
    points = axes.scatter(
        [row["ratio"] for row in known], [row["error"] for row in known], c=[row["density"] for row in known]
    )
    for row in known:
        axes.annotate(row["patterns"], (row["ratio"], row["error"]), fontsize=5, alpha=0.7)
    figure.colorbar(points, label="density")
    axes.set_xlabel("predicted speed, dense layer = 1")
    axes.set_ylabel("relative error (Frobenius)")
    save(figure, path)


LEAST_PAD = 64
"""Padded sizes are multiples of this, so that 2 to 64 blocks divide them."""


def suggested(rows: int, cols: int, density: float) -> tuple[KroneckerSparse, ...]:
    """Return single factors, pairs of factors as Monarch's, and low rank, each of at most density rows cols parameters.

    For each kind and number of blocks it is the list with the most parameters.

    Raises:
        PlanError: no list has so few parameters, or the density is not between 0 and 1. The text says which sizes have
            patterns, or the least density.
    """
    if not 0 < density <= 1:
        raise PlanError(f"density must be above 0 and at most 1, not {density}")
    budget = density * rows * cols
    found = [*_single(rows, cols, budget), *pairs(rows, cols, budget)]
    if rank := int(budget // (rows + cols)):
        found.append(KroneckerSparse(low_rank(rows, cols, min(rank, rows, cols))))
    if not found:
        advice = "" if (sizes := padded(rows, cols)) == (rows, cols) else f", or pad to {sizes[0]} x {sizes[1]}"
        least = (rows + cols) / (rows * cols)
        raise PlanError(
            f"no list for {rows} x {cols} has a density of at most {density:g}: rank 1 has {least:.3g}; raise the "
            f"density{advice}"
        )
    return tuple(found)


def padded(rows: int, cols: int) -> tuple[int, int]:
    """Return the least larger sizes that patterns divide: the same if LEAST_BLOCK does, else multiples of LEAST_PAD."""
    if math.gcd(rows, cols) % LEAST_BLOCK == 0:
        return rows, cols
    return -(-rows // LEAST_PAD) * LEAST_PAD, -(-cols // LEAST_PAD) * LEAST_PAD


def padding_advice(rows: int, cols: int) -> str | None:
    """Return why there are few lists for a layer of these sizes and which sizes have more, or None."""
    if (sizes := padded(rows, cols)) == (rows, cols):
        return None
    return (
        f"only divisors of gcd({rows}, {cols}) = {math.gcd(rows, cols)} can be numbers of blocks; a layer padded to "
        f"{sizes[0]} x {sizes[1]} has more patterns"
    )


def _single(rows: int, cols: int, budget: float) -> Iterator[KroneckerSparse]:
    """Yield factors (a, b, c, d) with the fewest blocks a d within the budget, for every factorization into a d."""
    common = math.gcd(rows, cols)
    blocks = next((one for one in divisors(common) if rows * cols / one <= budget), None)
    if blocks is None or min(rows, cols) // blocks < LEAST_BLOCK:
        return
    for d in divisors(blocks):
        yield KroneckerSparse((Pattern(blocks // d, rows // blocks, cols // blocks, d),))
