"""Hensel lifting of a scheme over GF(2) or GF(3) to the integers or the rationals.

A scheme that holds modulo 2^s is corrected by 2^s d, where J d = residual / 2^s modulo 2 and J is the
Jacobian of the Brent equations modulo 2, which never changes: it is decomposed once. Odd entries come
first among the columns, so a correction changes an even entry only where it must; where it changes none,
the symmetric residues modulo 4 are already -1, 0 and 1. No other support has ternary coefficients, as
they have the parity of the scheme modulo 2. Modulo 3 powers of 3 are used instead; there the symmetric
residues are the only possible ternary lift.

Source: Kauers and Moosbauer, "Flip graphs for matrix multiplication" (arXiv 2212.01175), section 5.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...arguments import INTEGER, need
from ...errors import PlanError, VerificationError
from ...schemes_db import Certificate, Kind, ProductKind, Q, Ring, Scheme, Z
from ...schemes_db.costs import product_kinds
from ...schemes_db.display import line
from ...schemes_db.factor import Factor, IntArray
from ...schemes_db.provenance import Step
from ...verify import certify

if TYPE_CHECKING:
    from .hensel import System

DEPTHS = {2: 24, 3: 15}
"""Hensel steps before rational reconstruction: fractions p/q with |p|, q <= 64 are unique modulo 2^24 and 3^15."""

FEW = 256
"""With more unknowns than FEW the equations of nonzero entries are decomposed first, those of all only if needed."""

MANY, SPARE = 1.25, 128
"""Of more than MANY equations for each unknown random sums are decomposed: as many as unknowns, and SPARE more."""

MEMORY = 1 << 33
"""Maximum number of bytes of a decomposition: 8 GB. Systems of equations that need more are not tried."""

_BOUND = 64
_LARGEST = 1 << 40


@dataclass(frozen=True)
class Lift:
    """The result of a lift: the certified scheme, or None and the reason."""

    scheme: Scheme | None = None
    certificate: Certificate | None = None
    reason: str = ""

    def __repr__(self) -> str:
        return line(f"lift {self.reason if self.scheme is None else self.scheme.label}")


def lift(scheme: Scheme, *, ring: Ring = Z, seed: int = 0, tries: int = 8, orders: int = 3) -> Lift:
    """Find a scheme over Z (or Q) equal to `scheme` modulo 2 (or 3); return it certified, or the reason of the failure.

    Ternary coefficients are preferred, then small integers, then, with `ring=Q`, fractions with
    denominators prime to the characteristic. Coefficients are nonzero on present blocks only, and half
    products remain half. Up to `tries` random sign choices (one modulo 3) are tried for each of `orders`
    orders of the unknowns. A failure at the first step proves that there is no lift (with the same half
    products); at a later step it does not.

    Raises:
        PlanError: the scheme is neither over Z2 nor over Z3, the ring is neither Z nor Q, or the equations take more
            than MEMORY even of the nonzero entries alone.
    """
    need(Scheme, scheme=scheme)
    need(Ring, ring=ring)
    need(INTEGER, least=0, seed=seed)
    need(INTEGER, least=1, tries=tries, orders=orders)
    prime = scheme.ring.characteristic
    if prime not in DEPTHS:
        raise PlanError(f"{scheme!r} can't be lifted: only a scheme over Z2 or Z3 can")
    if ring not in (Z, Q):
        raise PlanError(f"a lift to {ring} is not known; choose Z or Q")
    from .hensel import LIFTED, SOLVED, STUCK, UNEQUAL

    rng = np.random.default_rng(seed)
    best: tuple[int, IntArray, IntArray] | None = None
    deepest, fractional = 0, False
    for order in range(orders):
        steps = _Steps(scheme, rng if order else None)
        # Signs are determined modulo 3: only the order of the unknowns is free.
        for attempt in range(tries if prime == 2 else 1):
            outcome, step, x = steps.run(rng if attempt else None)
            deepest = max(deepest, step)
            if outcome == UNEQUAL:
                gigabytes = MEMORY >> 30
                return Lift(reason=f"the nonzero entries have no lift, and all entries need more than {gigabytes} GB")
            if outcome == STUCK and step == 1:
                return Lift(reason=f"no lift to Z/{prime**2}: the equations have no solution at step 1")
            if outcome == SOLVED:
                numerators, denominators = x, np.ones(3, dtype=np.int64)
            elif outcome == LIFTED and (fraction := _rational(x, steps.sizes, prime)) is not None:
                numerators, denominators = fraction
            else:
                continue
            broken = int(denominators.max()) > 1
            fractional |= broken
            if broken and ring is Z:
                continue
            # The largest numerator, with fractions after all integers.
            score = int(np.abs(numerators).max()) + broken * (1 << 32)
            if best is None or score < best[0]:
                best = score, numerators, denominators
            if score <= 1:
                break
        if best is not None and best[0] <= 2:
            break
    if best is None:
        reason = "only fractions were found: lift to Q" if fractional else f"no lift found beyond step {deepest}"
        return Lift(reason=reason)
    return _certified(scheme, best[1], best[2], ring, seed)


def _present(scheme: Scheme) -> list[IntArray]:
    return [np.flatnonzero(kinds.ravel() != Kind.ABSENT) for kinds in scheme.target.kind_arrays]


class _Steps:
    """Hensel steps from a scheme, with one order of the unknowns.

    Most corrections need the nonzero entries only, so their equations are decomposed first, and those of all entries
    if they have no solution: it is the same one where both have. Of many equations over GF(2) random sums are
    decomposed, as many as unknowns and SPARE more: every solution solves them, and with them most likely all.

    Args:
        rng: shuffles the unknowns within the nonzero and the zero entries.

    Attributes:
        sizes: (3,) numbers of present blocks.
    """

    def __init__(self, scheme: Scheme, rng: np.random.Generator | None) -> None:
        present, self._prime = _present(scheme), scheme.ring.characteristic
        self.sizes = np.array([len(blocks) for blocks in present], dtype=np.int64)
        pairs = zip(scheme.factors, present, strict=True)
        x = np.concatenate([factor.dense.reshape(scheme.rank, -1)[:, blocks] for factor, blocks in pairs], axis=1)
        x[x > 1] -= self._prime  # symmetric residues: 2 is -1 modulo 3
        self._x = np.ascontiguousarray(x)
        allowed = _allowed(scheme, present).ravel()
        candidates = np.arange(x.size, dtype=np.int64)
        if rng is not None:
            rng.shuffle(candidates)
        candidates = candidates[allowed[candidates]]
        odd = self._x.ravel()[candidates] != 0
        self._odd, self._unknowns = candidates[odd], np.concatenate([candidates[odd], candidates[~odd]])
        self._tensor = np.zeros(int(self.sizes.prod()), dtype=np.int64)
        a, b, c = (np.searchsorted(blocks, ids) for blocks, ids in zip(present, scheme.target.terms.T, strict=True))
        self._tensor[(a * self.sizes[1] + b) * self.sizes[2] + c] = scheme.target.term_values
        stages = [(self._odd, True)] * (len(self._unknowns) > FEW) + [(self._unknowns, True), (self._unknowns, False)]
        self._stages = [one for one in stages if self._equations(*one) * len(one[0]) * (self._prime - 1) <= 8 * MEMORY]
        if not self._stages:
            raise PlanError(f"the equations of {scheme!r} do not fit: a lift decomposes at most {MEMORY >> 30} GB")
        self._system = self._decomposed(*self._stages[0])
        pivots = self._system.pivots[: self._system.rank]
        self._free = np.delete(self._odd, pivots[pivots < len(self._odd)])

    def run(self, rng: np.random.Generator | None) -> tuple[int, int, IntArray]:
        """Return the outcome, the step and the coefficients (R, a + b + c); `rng` draws the signs of free entries."""
        from .hensel import STUCK, UNEQUAL, Scratch, lift_steps, ring_of

        start = self._x.copy()
        if rng is not None:
            start.ravel()[self._free] = rng.choice(np.array([-1, 1]), len(self._free))
        while True:
            system, x = self._system, start.copy()
            scratch = Scratch(
                np.empty(len(system.tensor), dtype=np.int64),
                np.empty(len(system.rows), dtype=np.int8),
                np.empty(system.rows.shape[1:], dtype=np.uint64),
                np.empty(system.rank, dtype=np.int8),
            )
            outcome, step = lift_steps(ring_of(self._prime), system, x, DEPTHS[self._prime], scratch)
            partial = outcome == UNEQUAL or (outcome == STUCK and len(system.unknowns) < len(self._unknowns))
            if not partial or len(self._stages) == 1:
                return UNEQUAL if partial else outcome, step, x
            del self._stages[0]
            self._system = self._decomposed(*self._stages[0])

    def _equations(self, unknowns: IntArray, summed: bool) -> int:
        """Return the number of equations of some unknowns, or of sums of them where these are much fewer."""
        wanted, count = len(unknowns) + SPARE, len(self._tensor)
        return wanted if summed and self._prime == 2 and count > MANY * wanted else count

    def _decomposed(self, unknowns: IntArray, summed: bool) -> System:
        """Return the equations of some unknowns, or sums of them, decomposed."""
        from ..terms.linear import decompose
        from .hensel import System, jacobian, ring_of

        count = self._equations(unknowns, summed)
        sums = np.arange(len(self._tensor), dtype=np.int64)[:, None]
        if count < len(sums):
            sums = np.random.default_rng(len(sums)).integers(count, size=(len(sums), 3))
        ring = ring_of(self._prime)
        rows = np.zeros((count, self._prime - 1, -(-len(unknowns) // 64)), dtype=np.uint64)
        jacobian(ring, self._x, self.sizes, unknowns, sums, rows)
        return System(self._x, self.sizes, self._tensor, unknowns, sums, rows, *decompose(ring, rows, len(unknowns)))


def _allowed(scheme: Scheme, present: list[IntArray]) -> npt.NDArray[np.bool_]:
    """Return the mask (R, a + b + c) of the entries that may become nonzero, so that half products remain half."""
    parts = [np.ones((scheme.rank, len(blocks)), dtype=bool) for blocks in present]
    for r, kind in enumerate(product_kinds(scheme)):
        if kind is not ProductKind.FULL:
            side = ("left", "right", "out").index(kind.side)
            wanted = Kind.UPPER if kind.of_upper else Kind.LOWER
            parts[side][r] = scheme.target.kind_arrays[side].ravel()[present[side]] == wanted
    return np.concatenate(parts, axis=1)


def _rational(x: IntArray, sizes: IntArray, prime: int) -> tuple[IntArray, IntArray] | None:
    """Return numerators (R, a + b + c) and denominators (3,) of the factors whose residues are x, or None."""
    modulus = prime ** DEPTHS[prime]
    numerators, denominators = np.zeros((2, *x.shape), dtype=np.int64)
    for q in range(1, _BOUND):
        if q % prime == 0:
            continue
        p = (x * q + modulus // 2) % modulus - modulus // 2
        fits = (denominators == 0) & (np.abs(p) <= _BOUND)
        numerators[fits], denominators[fits] = p[fits], q
    if not denominators.all():
        return None
    common, bounds = [], np.cumsum(sizes)[:-1]
    for above, below in zip(*(np.split(part, bounds, axis=1) for part in (numerators, denominators)), strict=True):
        common.append(math.lcm(*np.unique(below).tolist()))
        if common[-1] > _LARGEST:
            return None
        above *= common[-1] // below
    return numerators, np.array(common)


def _certified(scheme: Scheme, numerators: IntArray, denominators: IntArray, ring: Ring, seed: int) -> Lift:
    """Return the scheme of these coefficients as a lift, if it passes the exact check."""
    present = _present(scheme)
    parts = np.split(numerators, np.cumsum([len(blocks) for blocks in present])[:-1], axis=1)
    u, v, w = (
        Factor.from_dense(part[:, None], denominator).relabelled(factor.rows, factor.cols, blocks)
        for factor, blocks, part, denominator in zip(scheme.factors, present, parts, denominators.tolist(), strict=True)
    )
    lifted = Scheme(scheme.target, u, v, w, Z if denominators.max() == 1 else ring)
    return certified_lift(scheme, lifted, "Hensel lift", seed)


def certified_lift(origin: Scheme, lifted: Scheme, relation: str, seed: int | None = None) -> Lift:
    """Certify the lift of a scheme by the exact check; its command, seed, date and time are those of the origin.

    With the `seed` of a Hensel lift, which makes it reproducible, the origin's steps are continued.
    """
    before, steps = origin.provenance.steps, tuple[Step, ...]()
    if before and seed is not None:
        values = (("ring", lifted.ring.name), *((("seed", str(seed)),) if seed else ()))
        last = dataclasses.replace(before[-1], makes=origin.digest)
        steps = (*before[:-1], last, Step("lift", (origin.digest,), values))
    provenance = dataclasses.replace(
        origin.provenance, kind="search", parents=(origin.digest,), relation=relation, steps=steps
    )
    lifted = lifted.replace(provenance=provenance)
    try:
        certificate = certify(lifted)
    except VerificationError as error:
        return Lift(reason=f"the lifted coefficients are wrong: {error}")
    return Lift(lifted, certificate)
