"""`auto` on a GPU: the catalogue's schemes in one, two and three levels against the vendor's product."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.scheme import Scheme
from ...schemes_db.target import Target
from ..cuda.cost_model import Rates
from ..cuda.dtypes import itemsize
from ..cuda.flat_program import MAX_RANK
from ..cuda.level import Method
from ..cuda.shape import Shape
from ..dtypes import dtype_of
from ..planning.planner import plan
from ..planning.profile import Profile
from ..planning.strategy import Plan
from ..request import Request
from .pool import Choices, choices
from .vendor_cuda import NAME as VENDOR

MARGIN = 0.98
"""A scheme must be predicted to take at most this part of the vendor's time: the model is good to about 2%."""

NARROW, NARROW_MARGIN = 320, 0.93
"""Products of blocks with a side below NARROW are predicted less well (a spread of 4 to 9%, wider ones 3 to 5%)."""

HALF_MARGIN = 0.90
"""The same for half precision, whose rates move with the power that is left: by a profile of one card, plans on
another took 6% longer than predicted, and of those predicted to gain 2 to 10% none did in the mean."""

ESTIMATED, TRIED = 40, 4
"""How many grids and ranks of the best by the floor are estimated, and how many of the best by the estimate planned in
full. Ladders of one grid and rank move and multiply as much in whatever order their levels are: one of them will do."""

INSTANT = 50e-6
"""A product that the vendor has done in so many seconds is left to it: launches alone would eat the gain."""

COARSE, MAX_GRID = 2.0**-11, 5
"""Dtypes with so large a unit roundoff take grids of at most this side: three levels of Strassen lose too much
(measured: error 2.3e-2 in bfloat16, where the plain product has 1.7e-3)."""


@dataclass(frozen=True)
class Ladder:
    """Certified schemes by level, outermost first, and the grid and products of all of them together."""

    schemes: tuple[Scheme, ...]
    target: Target
    rank: int

    @property
    def like(self) -> tuple[Target, int]:
        """What the model tells ladders apart by."""
        return self.target, self.rank

    def over(self, scheme: Scheme) -> Ladder:
        """This ladder with one more level below."""
        return Ladder((*self.schemes, scheme), self.target.tensor(scheme.target), self.rank * scheme.rank)


def choose(request: Request, profile: Profile | None) -> tuple[Plan, tuple[Scheme, ...]]:
    """The best plan for a request on a GPU and its schemes by level.

    It is the vendor's product, of no levels, where nothing is predicted to gain 2%.

    Without a measured profile nothing can be predicted, and it is the vendor's.

    Raises:
        PlanError: nothing fits the request's limits.
    """
    vendor = vendor_plan(request, profile)
    limit = vendor.seconds
    if profile is None or limit is None or limit < INSTANT or profile.combine_rate is None:
        return vendor, ()
    best: tuple[Plan, tuple[Scheme, ...]] = vendor, ()
    tried: set[tuple[Target, int]] = set()
    for seconds, ladder in estimated(request, profile, limit):
        if seconds > limit or len(tried) == TRIED:
            break
        if ladder.like in tried:
            continue
        try:
            found = plan(request, list(ladder.schemes), profile=profile)
        except PlanError:  # too many values alive, say: another order may do
            continue
        tried.add(ladder.like)
        if gains(found, vendor) and (found.seconds or limit) < (best[0].seconds or limit):
            best = found, ladder.schemes
    return best


def estimated(request: Request, profile: Profile, limit: float = np.inf) -> list[tuple[float, Ladder]]:
    """Seconds of the ladders that are best by their floors, the fastest first; none whose floor is past `limit`."""
    rates = Rates(profile, request.dtype)
    floors = _floors(request, profile, rates)
    known = ladders().entries
    seconds: dict[tuple[Target, int], float | None] = {}
    found = []
    for i in np.argsort(floors, kind="stable").tolist():
        ladder = known[i]
        if floors[i] >= limit or (ladder.like not in seconds and len(seconds) == ESTIMATED):
            break
        if ladder.like not in seconds:
            seconds[ladder.like] = estimate(ladder, request, profile, rates)
        if (taken := seconds[ladder.like]) is not None:
            found.append((taken, i))
    return [(taken, known[i]) for taken, i in sorted(found)]


def gains(found: Plan, vendor: Plan) -> bool:
    """Whether a plan is predicted to take so much less than the vendor's that it is worth it; see `margin`."""
    if found.seconds is None or vendor.seconds is None:
        return False
    return found.seconds < margin(found) * vendor.seconds


def margin(found: Plan) -> float:
    """The part of the vendor's time that a plan must be predicted to take at most."""
    side = min((min(stage.product) for stage in found.stages if stage.product), default=NARROW)
    half = itemsize(found.request.dtype) == 2
    return min(MARGIN, NARROW_MARGIN if side < NARROW else 1.0, HALF_MARGIN if half else 1.0)


def _floors(request: Request, profile: Profile, rates: Rates) -> npt.NDArray[np.float64]:
    """Seconds that each ladder takes at least: without padding, its products at the best rate of all."""
    table = ladders()
    m, k, n, rank = table.figures
    moved = request.m * request.k * (1 + rank / (m * k)) + request.m * request.n * (1 + rank / (m * n))
    if request.static != "B":
        moved += request.k * request.n * (1 + rank / (k * n))
    items = Shape.of(request).items
    seconds = items * moved * itemsize(request.dtype) / (profile.combine_rate or np.inf)
    seconds = seconds + request.flops * rank / (m * k * n) / rates.best
    if dtype_of(request.dtype).unit >= COARSE:
        seconds = np.where(np.maximum(np.maximum(m, k), n) > MAX_GRID, np.inf, seconds)
    return seconds


def estimate(ladder: Ladder, request: Request, profile: Profile, rates: Rates) -> float | None:
    """Seconds of three stages with this ladder, from its sizes alone; None where a rate is not known.

    Source: FalconGEMM (arXiv:2605.06057), Table II, with all combinations bound by memory.
    """
    shape = Shape.of(request)
    m, k, n = shape.blocks(ladder.target)
    count = ladder.rank * shape.items
    known = [rates.seconds((m, k, n), count, way) for way in Method]
    products = min((seconds for seconds in known if seconds is not None), default=None)
    if products is None:
        return None
    moved = request.m * request.k + ladder.rank * m * k + request.m * request.n + ladder.rank * m * n
    if request.static != "B":
        moved += request.k * request.n + ladder.rank * k * n
    return products + shape.items * moved * itemsize(request.dtype) / (profile.combine_rate or np.inf)


@dataclass(frozen=True)
class Ladders:
    """All ladders, and their grids and products as rows m, k, n, rank of an array."""

    entries: tuple[Ladder, ...]
    figures: npt.NDArray[np.float64]


def ladders() -> Ladders:
    """What `choose` considers, of the user's catalogue."""
    return _ladders(_Same(choices()))


class _Same:
    """A catalogue's choices, compared as objects: they are made once."""

    def __init__(self, held: Choices) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


@lru_cache(maxsize=2)
def _ladders(known: _Same) -> Ladders:
    schemes = [choice.scheme for choice in known.held.entries if not choice.parts and choice.scheme.target.is_general]
    single = [Ladder((scheme,), scheme.target, scheme.rank) for scheme in schemes]
    double = [ladder.over(scheme) for ladder in single for scheme in schemes if ladder.rank * scheme.rank <= MAX_RANK]
    cubes = [ladder for ladder in double if ladder.target.shape == (4, 4, 4)]
    triple = [ladder.over(scheme) for ladder in cubes for scheme in schemes if scheme.target.shape == (2, 2, 2)]
    entries = tuple(single + double + [ladder for ladder in triple if ladder.rank <= MAX_RANK])
    figures = np.array([(*ladder.target.shape, ladder.rank) for ladder in entries], dtype=float).reshape(-1, 4)
    return Ladders(entries, figures.T)


def vendor_plan(request: Request, profile: Profile | None) -> Plan:
    """The plan of the vendor's product."""
    from ...schemes_db.algebra import naive

    return plan(request, naive(Target.general(1, 1, 1)), profile=profile, strategy=VENDOR)
