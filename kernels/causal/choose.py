"""Which way a triangular product is worked: as it was measured here, else as it is predicted."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from ...errors import PlanError
from ...schemes_db.costs import growth_factor
from ...schemes_db.program import Program
from ...schemes_db.scheme import Scheme
from ...schemes_db.shipped import shipped, shipped_names
from ...schemes_db.straightline import program_of
from ...schemes_db.symmetry import Triangle, derive, triangle_of
from ..machine import machine_profile
from ..multiply import certified
from ..profile import Profile
from ..request import Request
from ..strategy import Candidate, Executor, Plan, Stage
from .strategies import DENSE_ABOVE, HALVING, JOINED, STRIPS, TriangularStrategy, halves_program, strips_program
from .tuning import remembered

SMALL = 1 << 28
"""m k n below which the strips are taken at once."""

MARGIN = 0.04
"""The part of the strips' time that another way must save to be taken."""

FLOPS_PER_BYTE = 11.0
"""Of an unmeasured machine: operations of a GEMM in the time that a byte of sums takes. Measured, two Zen 5 cores."""

HALF_RATE_SIZE = 48.0
"""Of an unmeasured machine: a GEMM whose least size is this runs at half the rate of a large one."""

MOST_GROWTH = 100.0
"""Schemes of a larger growth factor are used where they are named, and never chosen.

Measured, float32: 22+12 makes the output of attention 2.4 times as wrong as the standard algorithm
does, ECA 1.2 times.
"""

KEPT_PLANS = 128

_lock = threading.Lock()
_plans: OrderedDict[tuple[Request, Triangle, str | None], tuple[Plan, Executor]] = OrderedDict()


def planned(request: Request, triangle: Triangle, way: str | None = None) -> tuple[Plan, Executor]:
    """The plan of a triangular product and its executor; the last 128 are kept.

    `way`: "strips", "halving", the name of a scheme for triangular products, or None for what should
    be fastest.

    Raises:
        PlanError: the sizes do not suit the triangle, or `way` is none.
    """
    key = request, triangle, way
    with _lock:
        if key in _plans:
            _plans.move_to_end(key)
            return _plans[key]
    plan = choose(request, triangle, way)
    made = plan, strategy_of(plan.candidate).build(plan.candidate.program, request)
    with _lock:
        _plans[key] = made
        while len(_plans) > KEPT_PLANS:
            _plans.popitem(last=False)
    return made


def forget_plans() -> None:
    """Plan anew from now on: something was measured."""
    with _lock:
        _plans.clear()


def choose(request: Request, triangle: Triangle, way: str | None = None, profile: Profile | None = None) -> Plan:
    """The plan of a triangular product.

    The strips, unless another way was measured here, or else is predicted, to save more than 4% of
    their time.

    Raises:
        PlanError: as `planned`.
    """
    profile = machine_profile() if profile is None else profile
    baseline = Candidate(strips_program(triangle), STRIPS.name, STRIPS.name)
    if reason := STRIPS.can_run(baseline.program, request, profile):
        raise PlanError(f"{request} cannot be run: {reason}")
    if way is not None:
        options = [candidate_of(way, triangle)]
    elif math.prod(request.shape) < SMALL:
        options = [baseline]
    else:
        options = candidates(request, triangle)
    plans, refused = [], []
    for candidate in options:
        strategy = strategy_of(candidate)
        if reason := strategy.can_run(candidate.program, request, profile):
            refused.append((str(candidate), reason))
            continue
        workspace = strategy.workspace(candidate.program, request)
        if request.max_workspace is not None and workspace > request.max_workspace:
            refused.append((str(candidate), f"needs {workspace} bytes of workspace"))
            continue
        stages = tuple(strategy.predict(candidate.program, request, profile))
        plans.append(Plan(request, candidate, strategy.version, stages, workspace, (), profile.id))
    if not plans:
        raise PlanError(f"{request} cannot be run: {'; '.join(f'{name}: {reason}' for name, reason in refused)}")
    best, why = _best(plans, request, triangle)
    others = [(str(plan.candidate), why(plan)) for plan in plans if plan is not best]
    return Plan(request, best.candidate, best.version, best.stages, best.workspace, (*refused, *others), best.profile)


def _best(plans: list[Plan], request: Request, triangle: Triangle) -> tuple[Plan, Callable[[Plan], str]]:
    times = remembered(request, triangle)
    known = bool(times) and {plan.candidate.label for plan in plans} <= set(times)
    costs = {id(plan): times[plan.candidate.label] if known else predicted(plan) for plan in plans}
    # The first plan is the strips: what is hardly faster than they are is no better than the noise it was seen in.
    least = min(plans, key=lambda plan: costs[id(plan)])
    best = least if costs[id(least)] < (1 - MARGIN) * costs[id(plans[0])] else plans[0]
    word = "measured" if known else "predicted"
    return best, lambda plan: f"{word} {costs[id(plan)] / costs[id(best)]:.3f} times the plan's time"


def predicted(plan: Plan) -> float:
    """Seconds, or on an unmeasured machine a time in another unit."""
    if plan.seconds is not None:
        return plan.seconds
    return sum(map(_plain_cost, plan.stages))


def _plain_cost(stage: Stage) -> float:
    if stage.product is None:
        return stage.bytes * FLOPS_PER_BYTE
    return stage.flops * (1 + HALF_RATE_SIZE / max(min(stage.product), 1))


def candidates(request: Request, triangle: Triangle) -> list[Candidate]:
    """All ways that may be worth a thought, the strips first."""
    found = [candidate_of("strips", triangle), candidate_of("halving", triangle)]
    size = request.n if triangle.side == "right" else request.m
    if size > DENSE_ABOVE:
        found.append(candidate_of("halving:strassen", triangle))
    return found + [candidate_of(name, triangle) for name in steady_names()]


@lru_cache(maxsize=256)
def candidate_of(way: str, triangle: Triangle) -> Candidate:
    """The candidate of a name: strips, halving, halving:DENSE_SCHEME, or a scheme for triangular products.

    Raises:
        PlanError: the scheme is not for triangular products, or exact for scalars only.
        CatalogError: there is no such scheme.
    """
    from ...schemes_db.resolve import resolve

    if way == "strips":
        return Candidate(strips_program(triangle), STRIPS.name, way)
    stem, _, inner = way.partition(":")
    if stem == "halving":
        dense = program_of(certified(resolve(inner))) if inner else None
        return Candidate(halves_program(triangle, dense), HALVING.name, way)
    return Candidate(scheme_program(resolve(way)[0], triangle), JOINED.name, way)


@lru_cache(maxsize=64)
def scheme_program(scheme: Scheme, triangle: Triangle) -> Program:
    """The program of a triangular product by a scheme for some triangular product, proven for this one."""
    if triangle_of(scheme.target) is None:
        raise PlanError(f"{scheme.name or scheme.target} is not for triangular products")
    if triangle.shared:
        if scheme.target == triangle.target(*scheme.target.shape):
            return program_of(certified(scheme))
        program = scheme_program(scheme, replace(triangle, shared=False))
        return replace(program, target=replace(program.target, shared=True))
    for m, k, n in sorted({scheme.target.shape, *_turned(scheme.target.shape)}):
        square = {"left": m == k, "right": k == n, "out": m == n}[triangle.side]
        if square:
            try:
                return program_of(certified(derive(scheme, triangle.target(m, k, n))))
            except PlanError as error:
                reason = error
    raise reason


def _turned(shape: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    m, k, n = shape
    return [(k, n, m), (n, m, k), (n, k, m), (k, m, n), (m, n, k)]


@lru_cache(maxsize=1)
def scheme_names() -> tuple[str, ...]:
    """The shipped schemes for triangular products with square grids."""
    found = []
    for name in shipped_names():
        scheme = shipped(name).scheme
        if triangle_of(scheme.target) and len(set(scheme.target.shape)) == 1 and not scheme.ring.characteristic:
            found.append(name)
    return tuple(found)


@lru_cache(maxsize=1)
def steady_names() -> tuple[str, ...]:
    """The shipped schemes for triangular products that are chosen without being named: see MOST_GROWTH."""
    return tuple(name for name in scheme_names() if growth_factor(shipped(name).scheme) <= MOST_GROWTH)


def strategy_of(candidate: Candidate) -> TriangularStrategy:
    """The strategy that a candidate names."""
    return {strategy.name: strategy for strategy in (STRIPS, HALVING, JOINED)}[candidate.strategy]
