"""CP-SAT models of the Brent equations: schemes of tiny targets, or proofs that none exist, and ternary lifts.

A coefficient that is even and ternary is 0, so a ternary lift has the zeros of the scheme over Z2, and each equation
determines how many of its products are negative.

Source of the symmetry breaking: Deza, Liu, Vaezipoor and Khalil (CP 2023): signs and the order of the products.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import PlanError
from ...schemes_db import Z2, Certificate, Kind, Provenance, Ring, Scheme, Target, Z
from ...verify import certify
from .solver import OnTick, solved

MAX_TRIPLES = 200_000
"""Maximum number of products of three coefficients in a model: 3x3x3 at rank 23 has 16,767."""

MAX_SIGNED_TRIPLES = 60_000
"""The same in a model of signs: sparse schemes of 4x4x5 have 9,000."""

_ORDER_BITS = 40


@dataclass(frozen=True)
class Solved:
    """The result: `found` with a certified scheme, `infeasible` (proven), or `unknown` (time limit)."""

    word: str
    scheme: Scheme | None
    certificate: Certificate | None
    seconds: float


def solve(
    target: Target,
    rank: int,
    *,
    ring: str = "ZT",
    seconds: float = 60.0,
    seed: int = 0,
    ordered: bool = False,
    on_tick: OnTick = lambda text: None,
) -> Solved:
    """Find a scheme of a target with exactly `rank` products, some of which may be zero, or prove that none exists.

    Args:
        ring: Z2, or ZT for coefficients -1, 0 and 1: `infeasible` then refers to such coefficients only.
        seconds: deterministic time of the solver.
        ordered: require lexicographically ordered products: faster proofs, slower finds.
        on_tick: called several times a second with the state of the solver.

    Raises:
        KeyboardInterrupt: interrupted before there was an answer.
        PlanError: the ring is neither, or the model would be too large.
    """
    if ring not in ("Z2", "ZT"):
        raise PlanError(f"equations over {ring} are not solved here; choose Z2 or ZT")
    if rank < 1 or rank * target.equations > MAX_TRIPLES:
        raise PlanError(
            f"{target} at rank {rank} has {rank * target.equations} products of three coefficients; a model takes "
            f"1 to {MAX_TRIPLES}: search with flips instead"
        )
    begin = time.perf_counter()
    present = [np.flatnonzero(kinds.ravel() != Kind.ABSENT).tolist() for kinds in target.kind_arrays]
    model = (_Mod2 if ring == "Z2" else _Ternary)(target, [[blocks] * rank for blocks in present])
    if ordered:
        model.order()
    solver, word, _ = solved(model.model, seconds=seconds, seed=seed, on_tick=on_tick)
    if word in ("infeasible", "unknown"):
        return Solved(word, None, None, time.perf_counter() - begin)
    provenance = Provenance(
        kind="search",
        seed=seed,
        relation="solution of the Brent equations",
        command=f"lcma solve {target.name} --rank {rank} --ring {ring} --seed {seed}",
        seconds=round(time.perf_counter() - begin, 3),
    )
    scheme = model.scheme(solver, Z2 if ring == "Z2" else Z, provenance)
    return Solved("found", scheme, certify(scheme), time.perf_counter() - begin)


def ternary_signs(scheme: Scheme, *, seconds: float = 5.0, seed: int = 0) -> tuple[Scheme | None, str]:
    """Return a ternary lift without provenance, or None and the reason; `seconds` is deterministic time."""
    if np.prod([np.diff(factor.indptr) for factor in scheme.factors], axis=0).sum() > MAX_SIGNED_TRIPLES:
        return None, "too many products of coefficients for a model of signs"
    model = _Signs(scheme)
    solver, word, _ = solved(model.model, seconds=seconds, seed=seed)
    if word in ("infeasible", "unknown"):
        return None, "no signs make it ternary" if word == "infeasible" else "no signs found in time"
    return model.scheme(solver, Z), ""


class BrentModel(ABC):
    """CP-SAT model of the Brent equations: a variable for every coefficient, a constraint for every equation.

    Args:
        target: what the scheme computes.
        entries: for each of U, V and W and each product the blocks whose coefficients are variables; others are 0.
    """

    def __init__(self, target: Target, entries: Sequence[Sequence[Sequence[int]]]) -> None:
        from ortools.sat.python import cp_model

        self.model: Any = cp_model.CpModel()
        self._target = target
        self.factors = [[{block: self.variable() for block in blocks} for blocks in rows] for rows in entries]
        terms: dict[tuple[int, ...], list[Any]] = {place: [] for place in target.coefficients}
        for u, v, w in zip(*self.factors, strict=True):
            for i, x in u.items():
                for j, y in v.items():
                    pair = self.product(x, y)
                    for l, z in w.items():
                        terms.setdefault((i, j, l), []).append(self.product(pair, z))
        for place, products in terms.items():
            self.equate(products, target.coefficients.get(place, 0))

    def variable(self) -> Any:
        """Return a new coefficient, a boolean as a rule."""
        return self.model.new_bool_var("")

    @abstractmethod
    def product(self, x: Any, y: Any) -> Any:
        """Return the product of two coefficients."""

    @abstractmethod
    def equate(self, products: list[Any], value: int) -> None:
        """Require that the sum of some products is a value."""

    def value(self, solver: Any, variable: Any) -> int:
        """Return a coefficient of a solution."""
        return int(solver.value(variable))

    def scheme(self, solver: Any, ring: Ring, provenance: Provenance | None = None) -> Scheme:
        """Return the scheme of a solution."""
        factors = []
        for rows, kinds in zip(self.factors, self._target.kind_arrays, strict=True):
            dense = np.zeros((len(rows), kinds.size), dtype=np.int64)
            for r, row in enumerate(rows):
                dense[r, list(row)] = [self.value(solver, variable) for variable in row.values()]
            factors.append(dense.reshape(-1, *kinds.shape))
        u, v, w = factors
        return Scheme.from_arrays(self._target, u, v, w, ring, provenance=provenance)

    def order(self) -> None:
        """Order the products by the first bits of their left and right factors, read as a number."""
        products = [[*u.values(), *v.values()] for u, v in zip(*self.factors[:2], strict=True)]
        rows = [[bit for x in row for bit in (x if isinstance(x, tuple) else (x,))][:_ORDER_BITS] for row in products]
        numbers = [sum((1 << (len(row) - 1 - place)) * bit for place, bit in enumerate(row)) for row in rows]
        for one, following in pairwise(numbers):
            self.model.add(one <= following)


class _Mod2(BrentModel):
    """Model over Z2: coefficients are booleans; every equation is an exclusive or."""

    def product(self, x: Any, y: Any) -> Any:
        z = self.variable()
        self.model.add_bool_or([x.negated(), y.negated(), z])
        self.model.add_implication(z, x)
        self.model.add_implication(z, y)
        return z

    def equate(self, products: list[Any], value: int) -> None:
        # An exclusive or is true for an odd number of true literals: a constant True inverts it.
        self.model.add_bool_xor(products if value % 2 else [*products, True])


class _Ternary(BrentModel):
    """Model over {-1, 0, 1}: a coefficient is a pair of booleans, plus and minus; every equation is a sum.

    The first nonzero of a left or right factor is 1, without loss: the sign of a factor can be moved to W.
    """

    def __init__(self, target: Target, entries: Sequence[Sequence[Sequence[int]]]) -> None:
        super().__init__(target, entries)
        for row in (*self.factors[0], *self.factors[1]):
            signs = list(row.values())
            for place, (_, minus) in enumerate(signs):
                self.model.add_bool_or([minus.negated(), *(plus for plus, _ in signs[:place])])

    def variable(self) -> tuple[Any, Any]:
        plus, minus = self.model.new_bool_var(""), self.model.new_bool_var("")
        self.model.add_at_most_one(plus, minus)
        return plus, minus

    def product(self, x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Any, Any]:
        plus, minus = self.variable()
        for a, b, c in ((0, 0, plus), (1, 1, plus), (0, 1, minus), (1, 0, minus)):
            self.model.add_bool_or([x[a].negated(), y[b].negated(), c])
        self.model.add(plus + minus <= x[0] + x[1])
        self.model.add(plus + minus <= y[0] + y[1])
        return plus, minus

    def equate(self, products: list[Any], value: int) -> None:
        self.model.add(sum(plus for plus, _ in products) - sum(minus for _, minus in products) == value)

    def value(self, solver: Any, variable: tuple[Any, Any]) -> int:
        return int(solver.value(variable[0])) - int(solver.value(variable[1]))


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
