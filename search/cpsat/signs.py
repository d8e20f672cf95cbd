"""CP-SAT model of the ternary lifts of a scheme over Z2: the choices of signs that solve the equations.

A coefficient that is even and ternary is 0, so a ternary lift has the zeros of the scheme, and each
equation determines how many of its products are negative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import PlanError
from ...schemes_db import Scheme, Z
from ...schemes_db.factor import IntArray
from .solver import solved

MAX_TRIPLES = 60_000
"""Maximum number of products of three coefficients in a model: sparse schemes of 4x4x5 have 9,000."""


def ternary_signs(scheme: Scheme, *, seconds: float = 5.0, seed: int = 0) -> tuple[list[IntArray] | None, str]:
    """Return U, V and W (R, blocks) of a ternary lift, or None; and `found`, `infeasible` (proven) or `unknown`.

    `seconds` is deterministic time.

    Raises:
        PlanError: the model would be too large.
    """
    if (triples := triples_of(scheme)) > MAX_TRIPLES:
        raise PlanError(f"{scheme!r} has {triples} products of coefficients; a model of signs takes {MAX_TRIPLES}")
    factors = [factor.dense.reshape(scheme.rank, -1).astype(np.int64) for factor in scheme.factors]
    model = _Signs(scheme, factors)
    if not model.possible:
        return None, "infeasible"
    solver, word, _ = solved(model.model, seconds=seconds, seed=seed)
    if word in ("infeasible", "unknown"):
        return None, word
    return model.signed(solver), "found"


def triples_of(scheme: Scheme) -> int:
    """Return the number of products of three coefficients in the equations."""
    return int(np.prod([np.diff(factor.indptr) for factor in scheme.factors], axis=0).sum())


def signed_scheme(scheme: Scheme, factors: list[IntArray]) -> Scheme:
    """Return the scheme over Z of the factors of `ternary_signs`; the caller sets its provenance."""
    u, v, w = (f.reshape(-1, *kinds.shape) for f, kinds in zip(factors, scheme.target.kind_arrays, strict=True))
    return Scheme.from_arrays(scheme.target, u, v, w, Z)


class _Signs:
    """Model with a boolean for every coefficient, true where it is negative."""

    def __init__(self, scheme: Scheme, factors: list[IntArray]) -> None:
        from ortools.sat.python import cp_model

        self.model: Any = cp_model.CpModel()
        self._factors = factors
        self._minus = [
            {(r, b): self.model.new_bool_var("") for r, b in np.argwhere(factor).tolist()} for factor in factors
        ]
        # The sign of a factor can be moved to W.
        for minus, factor in zip(self._minus[:2], factors, strict=False):
            for r, row in enumerate(factor):
                if row.any():
                    self.model.add(minus[r, int(np.flatnonzero(row)[0])] == 0)
        wanted = scheme.target.coefficients
        negative: dict[tuple[int, int, int], list[Any]] = {}
        for r in range(scheme.rank):
            a_s, b_s, c_s = (np.flatnonzero(factor[r]).tolist() for factor in factors)
            for a in a_s:
                for b in b_s:
                    pair = self._either(self._minus[0][r, a], self._minus[1][r, b])
                    for c in c_s:
                        negative.setdefault((a, b, c), []).append(self._either(pair, self._minus[2][r, c]))
        self.possible = wanted.keys() <= negative.keys()
        for place, terms in negative.items():
            goal = wanted.get(place, 0)
            self.possible &= (len(terms) - goal) % 2 == 0
            self.model.add(2 * sum(terms) == len(terms) - goal)

    def _either(self, x: Any, y: Any) -> Any:
        z = self.model.new_bool_var("")
        self.model.add_bool_xor([x, y, z, True])
        return z

    def signed(self, solver: Any) -> list[IntArray]:
        signed = [factor.copy() for factor in self._factors]
        for factor, minus in zip(signed, self._minus, strict=True):
            for (r, b), variable in minus.items():
                if solver.value(variable):
                    factor[r, b] = -1
        return signed
