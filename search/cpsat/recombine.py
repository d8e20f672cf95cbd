"""CP-SAT model of the cheapest scheme composed of products of given schemes.

The products u, v are given, so the equations are linear in W: select products and a W of -1, 0 and 1.

Source: the two mixed-integer programs of the ECA and RXTX authors, merged.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...errors import PlanError
from ...schemes_db import Certificate, Kind, Provenance, Scheme, Target, Z
from ...schemes_db.factor import IntArray
from ...verify import certify
from ..runs.bounds import signed_factors
from ..runs.objectives import score_of
from .solver import OnTick, solved

MAX_PRODUCTS = 600

HALVES = ({Kind.LOWER}, {Kind.UPPER})
"""The kinds of blocks of a factor that makes a product a half one."""


@dataclass(frozen=True)
class Recombined:
    """The scheme, whether it is proven optimal for the pool, and the pool's number of distinct products.

    `cheaper`: whether it costs less than the best scheme of the pool, a half product counting 1/2.
    `interrupted`: whether Ctrl-C ended the solver, and this is the best that it had.
    """

    scheme: Scheme
    certificate: Certificate
    optimal: bool
    products: int
    cheaper: bool
    seconds: float
    interrupted: bool = False


def recombine(
    schemes: Sequence[Scheme], *, seconds: float = 60.0, seed: int = 0, on_tick: OnTick = lambda text: None
) -> Recombined:
    """Find the cheapest scheme on the products of some schemes over Z, full ones of weight 1 and half ones 1/2.

    Raises:
        PlanError: no schemes are given, they compute different targets, are not ternary over Z, have too
            many distinct products, or the time was too short for any solution.
        KeyboardInterrupt: interrupted before any solution.
    """
    if not schemes:
        raise PlanError("no schemes to recombine: name some over Z")
    target = schemes[0].target
    for scheme in schemes:
        if scheme.target != target:
            raise PlanError(f"{scheme!r} computes {scheme.target}, not {target}: recombine schemes of one target")
        if scheme.ring is not Z or not scheme.ternary:
            raise PlanError(f"{scheme!r} is not ternary over Z: lift it first")
    begin = time.perf_counter()
    products = distinct_products(schemes)
    if len(products) > MAX_PRODUCTS:
        raise PlanError(f"{len(products)} distinct products are too many: a model takes {MAX_PRODUCTS}")
    cost = partial(score_of, "cost")
    best = min(schemes, key=cost)
    model = _Model(target, products, best)
    solver, word, interrupted = solved(model.model, seconds=seconds, seed=seed, on_tick=on_tick)
    if word not in ("optimal", "found"):
        raise PlanError(f"no scheme was put together in {seconds:g} s: give it more time, or fewer products")
    scheme = model.scheme(
        solver,
        Provenance(
            kind="search",
            seed=seed,
            parents=tuple(scheme.digest for scheme in schemes),
            relation="recombination",
            seconds=round(time.perf_counter() - begin, 3),
        ),
    )
    return Recombined(
        scheme,
        certify(scheme),
        word == "optimal",
        len(products),
        cost(scheme) < cost(best),
        time.perf_counter() - begin,
        interrupted,
    )


def distinct_products(schemes: Sequence[Scheme]) -> list[tuple[IntArray, IntArray]]:
    """Return the distinct (left, right) factors of all products up to sign, first nonzero 1, in order of appearance."""
    found: dict[bytes, tuple[IntArray, IntArray]] = {}
    for scheme in schemes:
        for left, right in zip(*signed_factors(scheme)[:2], strict=True):
            if left.any() and right.any():
                found.setdefault(left.tobytes() + right.tobytes(), (left, right))
    return list(found.values())


class _Model:
    def __init__(self, target: Target, products: list[tuple[IntArray, IntArray]], hint: Scheme) -> None:
        from ortools.sat.python import cp_model

        self.target, self._products = target, products
        self.model: Any = cp_model.CpModel()
        model = self.model
        kinds = [grid.ravel() for grid in target.kind_arrays]
        outputs = np.flatnonzero(kinds[2] != Kind.ABSENT).tolist()
        self._use = [model.new_bool_var(f"y{p}") for p in range(len(products))]
        self._w = {(p, k): model.new_int_var(-1, 1, "") for p in range(len(products)) for k in outputs}
        for (p, _), entry in self._w.items():
            model.add(entry == 0).only_enforce_if(self._use[p].negated())
        wanted = target.coefficients
        through: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for p, (left, right) in enumerate(products):
            for i in np.flatnonzero(left).tolist():
                for j in np.flatnonzero(right).tolist():
                    through.setdefault((i, j), []).append((p, int(left[i] * right[j])))
        for k in outputs:
            for (i, j), users in through.items():
                model.add(sum(sign * self._w[p, k] for p, sign in users) == wanted.get((i, j, k), 0))
        weights: list[Any] = []
        for p, (left, right) in enumerate(products):
            if any({*grid[row != 0].tolist()} in HALVES for row, grid in ((left, kinds[0]), (right, kinds[1]))):
                weights.append(self._use[p])
                continue
            halves = []
            for kind in (Kind.LOWER, Kind.UPPER):
                others = [k for k in outputs if kinds[2][k] != kind]
                if len(others) < len(outputs):
                    half = model.new_bool_var("")
                    model.add_implication(half, self._use[p])
                    for k in others:
                        model.add(self._w[p, k] == 0).only_enforce_if(half)
                    halves.append(half)
            if len(halves) > 1:
                model.add_at_most_one(halves)
            weights.append(2 * self._use[p] - sum(halves))
        model.minimize(sum(weights))
        self._hint(hint)

    def _hint(self, scheme: Scheme) -> None:
        """Give the solver the best scheme of the pool as a hint."""
        places = {left.tobytes() + right.tobytes(): p for p, (left, right) in enumerate(self._products)}
        values: dict[tuple[int, int], int] = {}
        used = set()
        for left, right, out in zip(*signed_factors(scheme), strict=True):
            p = places[left.tobytes() + right.tobytes()]
            used.add(p)
            for k in np.flatnonzero(out).tolist():
                values[p, k] = values.get((p, k), 0) + int(out[k])
        for p, use in enumerate(self._use):
            self.model.add_hint(use, p in used)
        for place, entry in self._w.items():
            self.model.add_hint(entry, values.get(place, 0))

    def scheme(self, solver: Any, provenance: Provenance) -> Scheme:
        """Return the scheme of a solution."""
        chosen = [p for p, use in enumerate(self._use) if solver.value(use)]
        grids = self.target.kind_arrays
        w = np.zeros((len(self._products), grids[2].size), dtype=np.int64)
        for place, entry in self._w.items():
            w[place] = solver.value(entry)
        parts = [*(np.array([self._products[p][side] for p in chosen]) for side in (0, 1)), w[chosen]]
        u, v, w = (part.reshape(-1, *grid.shape) for part, grid in zip(parts, grids, strict=True))
        return Scheme.from_arrays(self.target, u, v, w, provenance=provenance)
