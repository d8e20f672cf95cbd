"""Choosing scheme, levels and strategy for a request from what the catalogue holds and the machine's profile says."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from ...errors import PlanError
from ...schemes_db.algebra import naive
from ...schemes_db.program import ProductKind, Program
from ...schemes_db.straightline import program_of
from ...schemes_db.target import Target
from ..cpu.memory import NOTICED, free_bytes, shortage
from ..cpu.threads import spin_seconds
from ..cpu.workspace import shared_pool
from ..identity import Same
from ..planning.planner import considered
from ..planning.profile import Profile
from ..planning.strategy import Candidate, Plan
from ..request import Request
from .fronts import ladder
from .model import Verdict, compute_bound, worth_it
from .options import Option, options
from .pool import Choice, Choices, choices

MARGIN = 0.97
"""A scheme is taken where it should need less than this part of the plain product's time: predictions err."""

SHORT, SHORT_MARGIN = 1536, 0.93
"""Where a side is shorter the blocks are thin: over 24 shapes and 150 ways (`lcma bench choice`) measured times are
0.99 to 1.11 of the predicted ones, 1.04 in the median, where others are 1.00 in the median."""

THIN, THIN_MARGIN = 768, 0.9
"""Where K is shorter than this, every block of C is written after few multiplications: 1.10 of the predicted time."""

TRIED = 40
"""Options whose programs are looked at before the plain product is taken."""


@dataclass(frozen=True)
class Decision:
    """What was considered for a request, fastest first, and the plan that was taken."""

    request: Request
    plan: Plan
    chosen: Option
    options: tuple[Option, ...]
    choices: Choices
    bound: Verdict | None
    reason: str

    @property
    def plain(self) -> Option:
        """The library's own product."""
        return next(option for option in self.options if not option.chain)

    def verdicts(self, profile: Profile) -> list[Verdict]:
        """Eq. 8, and for the first level of what was chosen Eq. 9 and Eq. 10."""
        found = [self.bound]
        if self.chosen.chain:
            figures, sizes = self.choices.figures[self.chosen.chain[0]], self.request.shape
            found += [worth_it(profile, self.request.dtype, figures, *sizes, fused=fused) for fused in (False, True)]
        return [verdict for verdict in found if verdict is not None]


def decide(request: Request, profile: Profile, threads: int, among: Choices | None = None) -> Decision:
    """The best plan for a request; the plain product where nothing should beat it or nothing else fits its limits.

    Raises:
        PlanError: not even the plain product keeps to the limits.
    """
    among = choices() if among is None else among
    if request.dtype == "int8":
        plain = Option((), "gemm", math.nan, 0)
        reason = "int8 is multiplied by the schemes that are named"
        return Decision(request, plain_plan(request, profile), plain, (plain,), among, None, reason)
    bound = compute_bound(profile, request.dtype, *request.shape) if 0 not in request.shape else None
    spin = spin_seconds() if profile.source == "measured" else 0.0
    costs = ladder(request, profile, among, threads, spin)
    everything = options(request, costs)
    plain = next(option for option in everything if not option.chain)
    limit = _margin(request) * plain.seconds
    short = _short(everything, limit, among) if request.max_workspace is None else None
    if short:
        # As if the caller had said so: then the ways of little memory are there, too.
        most = int(min(free_bytes(), shared_pool.keep))
        everything = options(replace(request, max_workspace=most), costs)

    def decided(plan: Plan, option: Option, reason: str) -> Decision:
        return Decision(request, plan, option, tuple(everything), among, bound, reason)

    refused: list[tuple[str, str]] = [short] if short else []
    free = request.max_workspace is None and request.max_error is None and short is None
    within = "" if free else " within these limits"
    reason = f"nothing should be faster than the library's own product{within}"
    if 0 in request.shape:
        reason = "there is nothing to multiply"
    elif bound is None:
        reason = "nothing was measured for this machine: run lcma doctor --profile"
    elif not bound.holds:
        reason = f"memory-bound ({bound}): no scheme can gain"
    else:
        for option in everything[:TRIED]:
            if not option.seconds < limit:
                break
            found = _considered(option, request, profile, among)
            if isinstance(found, Plan):
                return decided(replace(found, refused=(*refused, *found.refused)), option, "fastest")
            refused.append((f"{option.strategy}: {option.label(among)}", found))
    return decided(replace(plain_plan(request, profile), refused=tuple(refused)), plain, reason)


def plain_plan(request: Request, profile: Profile) -> Plan:
    """The library's own product.

    Raises:
        PlanError: it does not keep to the limits.
    """
    found = considered(Candidate(plain_product(), "gemm", "GEMM"), request, profile)
    if not isinstance(found, Plan):
        raise PlanError(f"{request} cannot be run: {found}")
    return found


def _margin(request: Request) -> float:
    if request.k < THIN:
        return THIN_MARGIN
    return MARGIN if min(request.shape) >= SHORT else SHORT_MARGIN


def _short(found: list[Option], limit: float, among: Choices) -> tuple[str, str] | None:
    """The fastest option that should win and whose workspace cannot be had, or not be kept, with the reason."""
    better = [option for option in found[:TRIED] if option.seconds < limit]
    # Asked once: the answer takes as long as a tenth of the plan.
    free = free_bytes() if any(option.workspace >= NOTICED for option in better) else math.inf
    for option in better:
        if reason := shortage(option.workspace, free) or _fleeting(option.workspace):
            return f"{option.strategy}: {option.label(among)}", reason
    return None


def _fleeting(workspace: int) -> str | None:
    """Why so much workspace is too much: fresh pages at every call were seen to halve the speed."""
    if workspace <= shared_pool.keep:
        return None
    return f"{workspace / 1e6:.1f} MB of workspace are more than the {shared_pool.keep / 1e6:.1f} MB kept between calls"


def _considered(option: Option, request: Request, profile: Profile, among: Choices) -> Plan | str:
    program = _program(Same(among), option.chain)
    found = considered(Candidate(program, option.strategy, option.label(among)), request, profile)
    if request.max_workspace is None and isinstance(found, Plan):
        return _fleeting(found.workspace) or found
    return found


@lru_cache(maxsize=128)
def _program(among: Same, chain: tuple[int, ...]) -> Program:
    return program_of_chain(tuple(among.held.entries[i] for i in chain))


def program_of_chain(chain: tuple[Choice, ...]) -> Program:
    """The nested program of a chain of choices; of no choice the plain product."""
    if not chain:
        return plain_product()
    head = chain[0].program
    return head.nested({ProductKind.FULL: program_of_chain(chain[1:])}) if len(chain) > 1 else head


@lru_cache(maxsize=1)
def plain_product() -> Program:
    """The program of one product, the classical 1x1x1."""
    return program_of(naive(Target.general(1, 1, 1)))
