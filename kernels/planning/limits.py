"""Limits that candidates must respect, and margins over the baseline that they must gain to be chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..precision import FP8
from ..request import Request
from .error import error_bound
from .machine import Machine
from .strategy import Candidate, Stage, Strategy

FreeBytes = Callable[[], float]
"""Returns the free bytes: `Machine.free_bytes`, or a cached value of it."""

CHECKED = 64 << 20
"""Bytes of workspace from which the free memory is checked: reading it takes longer than small plans."""


@dataclass(frozen=True)
class Margin:
    """The fraction of the baseline's predicted seconds that a candidate must stay below if `applies` holds.

    `measured` describes the measurement behind the figure, `where` the requests that it is for, if not all.
    """

    device: str
    families: tuple[str, ...]
    part: float
    measured: str
    where: str = ""
    applies: Callable[[Request, Sequence[Stage]], bool] = lambda request, stages: True

    @property
    def text(self) -> str:
        """The gain that is needed, in percent, and where."""
        return f"{1 - self.part:.0%} {self.where}".rstrip()


def _least_side(stages: Sequence[Stage]) -> float:
    return min((min(stage.product) for stage in stages if stage.product), default=float("inf"))


MARGINS: tuple[Margin, ...] = (
    Margin(
        "cpu",
        ("dense",),
        0.97,
        "lcma bench choice: predicted times of long products are 0.99 to 1.01 of the measured ones",
    ),
    Margin(
        "cpu",
        ("dense",),
        0.93,
        "lcma bench choice, 24 shapes and 150 candidates: measured times are 0.99 to 1.11 of the predicted ones",
        "where a side is below 1536",
        lambda request, stages: min(request.shape) < 1536,
    ),
    Margin(
        "cpu",
        ("dense",),
        0.90,
        "lcma bench choice: every block of C is written after few multiplications, 1.10 of the predicted time",
        "where K is below 768",
        lambda request, stages: request.k < 768,
    ),
    Margin(
        "cpu",
        ("causal", "masked"),
        0.96,
        "lcma bench causal: candidates within 4% of the strips change places between runs",
    ),
    Margin(
        "cpu",
        ("structured",),
        0.97,
        "lcma bench ks, four rows on two busy cores: slabs take 0.28 to 0.56 of the time of the fastest of the others; "
        "lcma time of a Monarch, a low-rank and a BLAST matrix, batch 4096: GEMMs on views take 0.18 to 0.67 of others",
    ),
    Margin(
        "cpu",
        ("exact",),
        0.95,
        "lcma time auto --ring, one core: GF(32749) and GF(8388593) at 2048 and 4096 gain 1 to 9% where at least 5% "
        "was predicted, GF(2) at 16384 23%",
    ),
    Margin(
        "cuda",
        ("exact",),
        0.90,
        "lcma time --ring --device cuda on an H200, GF(2) at 32768 and 65536, integers at 2048 and 4096: predicted "
        "times are 0.87 to 1.08 of the measured ones",
    ),
    Margin("cuda", ("dense",), 0.98, "lcma bench gpu --device cuda: the model is right to about 2%"),
    Margin(
        "cuda",
        ("dense",),
        0.93,
        "calibration on 1919 plans, H200: narrow blocks scatter by 4 to 9%, wider ones by 3 to 5%",
        "where blocks are narrower than 320",
        lambda request, stages: _least_side(stages) < 320,
    ),
    Margin(
        "cuda",
        ("dense",),
        0.90,
        "a profile of one H200 applied to another: plans took 6% longer than predicted, and of those predicted to "
        "gain 2 to 10% none did in the mean",
        "in half precision",
        lambda request, stages: request.itemsize == 2 and request.precision != FP8,
    ),
    Margin(
        "cuda",
        ("structured",),
        0.99,
        "every candidate of 64 patterns batch-first, 43 batch-last, H200: the least is 1.000 to 1.020 of the best "
        "time, geometric means by dtype; lcma bench blr, 135 layers: the form of the least price is the fastest one or "
        "within 1% in 131",
    ),
    Margin(
        "cuda",
        ("causal",),
        0.95,
        "59 products of L and d from 64 to 16384 in five dtypes, H200: predicted ratios of candidates to strips are "
        "right to 5% from 100 us on",
    ),
)


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


SMALL = {("cpu", "causal"): 1 << 28}
"""m k n by device and family below which the baseline is chosen without planning, which would cost the gain."""


def smallness(family: str, request: Request) -> str | None:
    """Return the reason why the baseline runs a request without planning, or None."""
    if not 0 < math.prod(request.shape) < SMALL.get((request.device, family), 0):
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
