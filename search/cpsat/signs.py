"""CP-SAT model of the ternary lifts of a scheme over Z2: the choices of signs that solve the equations.

A coefficient that is even and ternary is 0, so a ternary lift has the zeros of the scheme, and each
equation determines how many of its products are negative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import PlanError
from ...schemes_db import Scheme, Z
from .brent import BrentModel
from .solver import solved

MAX_TRIPLES = 60_000
"""Maximum number of products of three coefficients in a model: sparse schemes of 4x4x5 have 9,000."""


def ternary_signs(scheme: Scheme, *, seconds: float = 5.0, seed: int = 0) -> tuple[Scheme | None, str]:
    """Return a ternary lift without provenance, or None; and `found`, `infeasible` (proven) or `unknown`.

    `seconds` is deterministic time.

    Raises:
        PlanError: the model would be too large.
    """
    if (triples := triples_of(scheme)) > MAX_TRIPLES:
        raise PlanError(f"{scheme!r} has {triples} products of coefficients; a model of signs takes {MAX_TRIPLES}")
    model = _Signs(scheme)
    solver, word, _ = solved(model.model, seconds=seconds, seed=seed)
    return (None, word) if word in ("infeasible", "unknown") else (model.scheme(solver, Z), "found")


def triples_of(scheme: Scheme) -> int:
    """Return the number of products of three coefficients in the equations."""
    return int(np.prod([np.diff(factor.indptr) for factor in scheme.factors], axis=0).sum())


class _Signs(BrentModel):
    """Model with a boolean for every nonzero coefficient, true where it is negative."""

    def __init__(self, scheme: Scheme) -> None:
        dense = [factor.dense.reshape(scheme.rank, -1) for factor in scheme.factors]
        super().__init__(scheme.target, [[np.flatnonzero(row).tolist() for row in factor] for factor in dense])
        for row in (*self.factors[0], *self.factors[1]):  # the sign of a factor can be moved to W
            for first in list(row.values())[:1]:
                self.model.add(first == 0)

    def product(self, x: Any, y: Any) -> Any:
        z = self.variable()
        self.model.add_bool_xor([x, y, z, True])
        return z

    def equate(self, products: list[Any], value: int) -> None:
        self.model.add(2 * sum(products) == len(products) - value)

    def value(self, solver: Any, variable: Any) -> int:
        return -1 if solver.value(variable) else 1
