"""CP-SAT model of the Brent equations of a tiny target: find a scheme of a rank, or prove that none exists.

Source of the symmetry breaking: Deza, Liu, Vaezipoor and Khalil (CP 2023): signs and the order of the products.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import PlanError
from ...schemes_db import Z2, Certificate, Kind, Provenance, Scheme, Target, Z
from ...verify import certify
from .solver import OnTick, solved

MAX_TRIPLES = 200_000
"""Maximum number of products of three coefficients in a model: 3x3x3 at rank 23 has 16,767."""

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
    present = [np.flatnonzero(kinds.ravel() != Kind.ABSENT).tolist() for kinds in target.kind_arrays]
    if rank < 1 or rank * target.equations > MAX_TRIPLES:
        raise PlanError(
            f"{target} at rank {rank} has {rank * target.equations} products of three coefficients; a model takes "
            f"1 to {MAX_TRIPLES}: search with flips instead"
        )
    begin = time.perf_counter()
    model: Any = (_Mod2 if ring == "Z2" else _Ternary)(target, rank, present, ordered)
    solver, word, _ = solved(model.model, seconds=seconds, seed=seed, on_tick=on_tick)
    if word in ("infeasible", "unknown"):
        return Solved(word, None, None, time.perf_counter() - begin)
    factors = []
    for part, blocks, kinds in zip(model.parts, present, target.kind_arrays, strict=True):
        dense = np.zeros((rank, kinds.size), dtype=np.int64)
        dense[:, blocks] = [[model.value(solver, variable) for variable in row] for row in part]
        factors.append(dense.reshape(rank, *kinds.shape))
    provenance = Provenance(
        kind="search",
        seed=seed,
        relation="solution of the Brent equations",
        command=f"lcma solve {target.name} --rank {rank} --ring {ring} --seed {seed}",
        seconds=round(time.perf_counter() - begin, 3),
    )
    u, v, w = factors
    scheme = Scheme.from_arrays(target, u, v, w, Z2 if ring == "Z2" else Z, provenance=provenance)
    return Solved("found", scheme, certify(scheme), time.perf_counter() - begin)


class _Mod2:
    """Model over Z2: coefficients are booleans; every equation is an exclusive or."""

    def __init__(self, target: Target, rank: int, present: list[list[int]], ordered: bool) -> None:
        from ortools.sat.python import cp_model

        self.model: Any = cp_model.CpModel()
        self.parts = [
            [[self.model.new_bool_var(f"{name}{r},{b}") for b in blocks] for r in range(rank)]
            for name, blocks in zip("uvw", present, strict=True)
        ]
        wanted = target.coefficients
        u, v, w = self.parts
        pairs = [[[self._both(x, y) for y in v[r]] for x in u[r]] for r in range(rank)]
        for i, p in enumerate(present[0]):
            for j, q in enumerate(present[1]):
                for l, s in enumerate(present[2]):
                    terms = [self._both(pairs[r][i][j], w[r][l]) for r in range(rank)]
                    # An exclusive or is true for an odd number of true literals: a constant True inverts it.
                    self.model.add_bool_xor(terms if wanted.get((p, q, s), 0) % 2 else [*terms, True])
        if ordered:
            _order(self.model, [[*a, *b] for a, b in zip(u, v, strict=True)])

    def _both(self, x: Any, y: Any) -> Any:
        z = self.model.new_bool_var("")
        self.model.add_bool_or([x.negated(), y.negated(), z])
        self.model.add_implication(z, x)
        self.model.add_implication(z, y)
        return z

    @staticmethod
    def value(solver: Any, variable: Any) -> int:
        return int(solver.value(variable))


class _Ternary:
    """Model over {-1, 0, 1}: a coefficient is a pair of booleans, plus and minus; every equation is a sum."""

    def __init__(self, target: Target, rank: int, present: list[list[int]], ordered: bool) -> None:
        from ortools.sat.python import cp_model

        self.model: Any = cp_model.CpModel()
        self.parts = [[[self._variable() for _ in blocks] for _ in range(rank)] for blocks in present]
        wanted = target.coefficients
        u, v, w = self.parts
        pairs = [[[self._product(x, y) for y in v[r]] for x in u[r]] for r in range(rank)]
        for i, p in enumerate(present[0]):
            for j, q in enumerate(present[1]):
                for l, s in enumerate(present[2]):
                    terms = [self._product(pairs[r][i][j], w[r][l]) for r in range(rank)]
                    total = sum(plus for plus, _ in terms) - sum(minus for _, minus in terms)
                    self.model.add(total == wanted.get((p, q, s), 0))
        for part in (u, v):
            for row in part:
                self._first_is_plus(row)
        if ordered:
            _order(self.model, [[x for pair in (*a, *b) for x in pair] for a, b in zip(u, v, strict=True)])

    def _variable(self) -> tuple[Any, Any]:
        plus, minus = self.model.new_bool_var(""), self.model.new_bool_var("")
        self.model.add_at_most_one(plus, minus)
        return plus, minus

    def _product(self, x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Any, Any]:
        plus, minus = self._variable()
        for a, b, c in ((0, 0, plus), (1, 1, plus), (0, 1, minus), (1, 0, minus)):
            self.model.add_bool_or([x[a].negated(), y[b].negated(), c])
        self.model.add(plus + minus <= x[0] + x[1])
        self.model.add(plus + minus <= y[0] + y[1])
        return plus, minus

    def _first_is_plus(self, row: list[tuple[Any, Any]]) -> None:
        """Require that the first nonzero is a plus, without loss: the sign of a factor can be moved to W."""
        for place, (_, minus) in enumerate(row):
            self.model.add_bool_or([minus.negated(), *(plus for plus, _ in row[:place])])

    @staticmethod
    def value(solver: Any, variable: tuple[Any, Any]) -> int:
        return int(solver.value(variable[0])) - int(solver.value(variable[1]))


def _order(model: Any, rows: list[list[Any]]) -> None:
    """Order the products by their first bits, read as a number."""
    bits = min(len(rows[0]), _ORDER_BITS)
    numbers = [sum((1 << (bits - 1 - place)) * bit for place, bit in enumerate(row[:bits])) for row in rows]
    for one, next_ in pairwise(numbers):
        model.add(one <= next_)
