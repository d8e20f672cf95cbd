"""Limits that candidates must respect, a-priori bounds of errors among them, and the margins that they must gain."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from ...schemes_db.costs import growth_and_roundings
from ...schemes_db.program import Program
from ..identity import memoize_on_instance
from ..precision import FP8
from ..request import Request
from .machine import Machine
from .strategy import Candidate, Stage, Strategy

_growth = memoize_on_instance(growth_and_roundings)


def error_bound(program: Program | None, request: Request) -> float:
    """Return a bound on |error| of an element of C relative to k max|A| max|B|; 0 for integers.

    The classical product's own bound is k times the unit roundoff. Bounds are worst cases: measured
    errors are far smaller for every scheme.

    Source: the recursion f = E (f_inner + (k / grid) q), with E the growth factor and q the
    roundings in sums, of Ballard, Benson, Druinsky, Lipshitz, Schwartz (2016), section 3.
    """
    if request.exact or request.k == 0:
        return 0.0
    return request.unit * _factor(program, request.k) / request.k


def _factor(program: Program | None, inner_size: int) -> float:
    """Return f with |error| <= f * unit roundoff * max|A| max|B| for a product of this inner size."""
    if program is None:
        return float(inner_size) ** 2
    block = -(-inner_size // program.target.k)
    growth, roundings = _growth(program)
    below = dict(program.inner)
    kinds = {op.kind for op in program.products}
    return growth * (max(_factor(below.get(kind), block) for kind in kinds) + block * roundings)


FreeBytes = Callable[[], float]
"""Returns the free bytes: `Machine.free_bytes`, or a cached value of it."""

CHECKED = 64 << 20
"""Bytes of workspace from which the free memory is checked: reading it takes longer than small plans."""


SIZES: dict[str, tuple[str, Callable[[Request, Sequence[Stage]], float]]] = {
    "side": ("where a side is below", lambda request, stages: min(request.shape)),
    "k": ("where K is below", lambda request, stages: request.k),
    "block": (
        "where blocks are narrower than",
        lambda request, stages: min((min(stage.product) for stage in stages if stage.product), default=math.inf),
    ),
}
"""The sizes that a margin may be for, with the words for them."""


@dataclass(frozen=True)
class Margin:
    """The part of the baseline's predicted seconds that a candidate must stay below: an entry of data/margins.toml."""

    device: str
    families: Sequence[str]
    part: float
    measured: str
    size: str = ""
    below: int = 0
    half: bool = False

    @property
    def text(self) -> str:
        """The gain that is needed, in percent, and where."""
        where = f"{SIZES[self.size][0]} {self.below}" if self.size else "in half precision" * self.half
        return f"{1 - self.part:.0%} {where}".rstrip()

    def applies(self, request: Request, stages: Sequence[Stage]) -> bool:
        """Return whether the margin is for a plan of a request with these stages."""
        if self.half:
            return request.itemsize == 2 and request.precision != FP8
        return not self.size or SIZES[self.size][1](request, stages) < self.below


_TABLE = (resources.files("lcma.kernels.planning") / "data" / "margins.toml").read_text(encoding="utf-8")

MARGINS = tuple(Margin(**entry) for entry in tomllib.loads(_TABLE)["margin"])


def applying_margins(family: str, request: Request, stages: Sequence[Stage]) -> list[Margin]:
    """Return the margins of a candidate with these stages; it must stay below the smallest one."""
    return [
        entry
        for entry in MARGINS
        if entry.device == request.device and family in entry.families and entry.applies(request, stages)
    ]


def margin(family: str, request: Request, stages: Sequence[Stage]) -> float:
    """Return the fraction of the baseline's seconds that a candidate with these stages must stay below."""
    return min((entry.part for entry in applying_margins(family, request, stages)), default=1.0)


SMALL = 1 << 28
"""m k n of causal products on a processor below which the baseline runs without planning: it would cost the gain."""


def smallness(request: Request) -> str | None:
    """Return the reason why the baseline runs a request without planning, or None."""
    if (request.device, request.family) != ("cpu", "causal") or not 0 < math.prod(request.shape) < SMALL:
        return None
    return "the product is small: it is left to the baseline at once"


@lru_cache(maxsize=8)
def margins_text(device: str, family: str) -> str:
    """Return the margins of a family as text."""
    return ", ".join(entry.text for entry in MARGINS if entry.device == device and family in entry.families)


def refusal(
    strategy: Strategy, candidate: Candidate, request: Request, machine: Machine, free_bytes: FreeBytes
) -> tuple[str | None, int]:
    """Return the reason why a candidate cannot run a request within its limits, or None, and its workspace in bytes."""
    if reason := strategy.can_run(candidate, request, machine):
        return reason, 0
    workspace = strategy.workspace(candidate, request, machine)
    if request.max_workspace is not None and workspace > request.max_workspace:
        return f"needs {workspace} bytes of workspace, more than the {request.max_workspace} allowed", workspace
    if reason := memory_shortage(workspace, free_bytes):
        return reason, workspace
    program = candidate.program if request.max_error is not None else None
    if request.max_error is not None and (bound := error_bound(program, request)) > request.max_error:
        return f"its error can reach {bound:.2g}, more than the {request.max_error:.2g} allowed", workspace
    return None, workspace


def memory_shortage(workspace: int, free_bytes: FreeBytes) -> str | None:
    """Return the reason why so many bytes of workspace are not available, or None."""
    if workspace < CHECKED or workspace <= (free := free_bytes()):
        return None
    return f"needs {workspace} bytes of workspace, and {free:.0f} are free"


def exceeds_kept(workspace: int, machine: Machine) -> str | None:
    """Return the reason why `auto` should not use so much workspace, or None.

    Fresh pages at every call were measured to halve the speed.
    """
    if workspace <= machine.kept_bytes:
        return None
    return f"{workspace / 1e6:.1f} MB of workspace exceed the {machine.kept_bytes / 1e6:.1f} MB kept between calls"
