"""One row of suite "hand": a process of its own, whose home is empty, multiplies as a user would, with defaults.

Run as a module with a JSON object; prints one. Blocks of calls alternate with blocks of the vendor's libraries, so
that a slow phase of the machine falls on both; their times are those of whole blocks, which a GPU has finished. The
vendor's blocks have the machine for themselves: the process that compiles for ours stands still meanwhile. Totals are
compared with totals, the vendor's calls at their mean: a few slow calls are in both.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import lcma

from ...kernels.arrays import torch
from ...kernels.learning import learner
from ...kernels.precision import TF32, arithmetic_of
from .contest import Call, Calls, Contest, CpuClock, Timing, paired_interval, paired_ratios, require_right

BLOCK_SECONDS = 0.02
"""Seconds of a block of the vendor's calls, at mean one call."""

VENDOR_EVERY = 4
"""Blocks of ours between two of the vendor's, until the class is decided."""

CALLS, SECONDS, LONGEST = 60, 30.0, 150.0
"""The loop ends after so many calls and seconds, and after a decision; LONGEST seconds end it in any case."""

DECIDED_BLOCKS, NARROW, DECIDED_SECONDS = 20, 0.012, 40.0
"""Interleaved blocks after the decision: so many, and as many more, until the interval of their ratio is NARROW or all
have taken DECIDED_SECONDS. Of 20 calls of numpy's product against 20 of itself the interval is 0.03 wide.
"""

MOST_ERROR = {"float32": 1e-4, "float64": 1e-12, "tf32": 1e-2, "bfloat16": 5e-2, "fp32-accurate": 1e-4}
"""Largest relative Frobenius distance between our product and the vendor's."""


def operands(
    device: str, kind: str, dtype: str, shape: list[int], seed: int
) -> tuple[Call, Call, Callable[[], object]]:
    """Return our call, that of the vendor's library, and a function that waits for the device."""
    m, k, n = shape
    if device == "cpu":
        rng = np.random.default_rng(seed)
        a, b = (rng.standard_normal(size).astype(dtype) for size in ((m, k), (k, n)))
        if kind == "causal":
            q, keys = a, b.T.copy()
            return (lambda: lcma.causal_qk(q, keys)), (lambda: np.tril(q @ keys.T)), (lambda: None)
        return (lambda: lcma.matmul(a, b)), (lambda: np.matmul(a, b)), (lambda: None)
    stored, precision = arithmetic_of(dtype)
    torch.backends.cuda.matmul.allow_tf32 = precision == TF32
    plain = getattr(torch, stored)
    generator = torch.Generator("cuda").manual_seed(seed)
    x, y = (torch.randn(size, generator=generator, device="cuda", dtype=plain) for size in ((m, k), (k, n)))
    chosen = None if precision == TF32 else precision
    ours: Any = lcma.matmul
    return (lambda: ours(x, y, precision=chosen)), (lambda: torch.matmul(x, y)), torch.cuda.synchronize


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of one row: first calls, the loop over the vendor's time, the decision, the ratio after it.

    Raises:
        VerificationError: our product and the vendor's differ by more than rounding.
    """
    ours, vendor, wait = operands(**task)

    def check() -> None:
        result, wanted = ours(), vendor()
        distance = float(((result - wanted) ** 2).sum() / (wanted**2).sum()) ** 0.5
        require_right("our product", distance, MOST_ERROR[task["dtype"]], "relative distance from the vendor's")

    once = CpuClock(1, wait)
    once.seconds(vendor)  # starts the library
    first_ours = once.seconds(ours)
    check()
    clock = CpuClock(max(1, math.ceil(BLOCK_SECONDS / once.seconds(vendor))), wait)
    theirs = [clock.seconds(vendor)]
    spent, calls, blocks, decided = 0.0, 0, 0, None
    began = time.perf_counter()
    while True:
        seconds = clock.seconds(ours)
        spent, calls, blocks = spent + seconds * clock.count, calls + clock.count, blocks + 1
        elapsed = time.perf_counter() - began
        lesson: Any = next((one for one in learner.lessons() if one.calls), None)
        if decided is None and lesson is not None and lesson.trial.decided and lesson.trial.median is not None:
            decided = elapsed
        if blocks % VENDOR_EVERY == 0:
            with learner.compiler_stopped():
                theirs.append(clock.seconds(vendor))
        long_enough = calls >= CALLS and spent >= SECONDS
        if (long_enough and decided is not None) or elapsed > LONGEST:
            break
    mean = statistics.fmean(theirs)
    check()  # by the winner now
    theirs_after, ours_after = compared({"vendor": vendor, "ours": ours}, clock)
    low, high = paired_interval(theirs_after, ours_after)
    return {
        "calls": calls,
        "vendor_ms": 1e3 * mean,
        "first_extra_s": first_ours - mean,
        "total": spent / (calls * mean),
        "over_s": spent - calls * mean,
        "allowed_s": 0.03 * calls * mean + 0.1,
        "decided_s": decided,
        "after": float(np.median(paired_ratios(theirs_after, ours_after))),
        "after_low": low,
        "after_high": high,
        "plan": None if lesson is None else str(lesson.plan.candidate),
    }


def compared(calls: Calls, clock: CpuClock) -> tuple[Timing, Timing]:
    """Return the times of two calls in turns, until the interval of their ratio is NARROW; see DECIDED_BLOCKS."""
    baseline, timing = (Timing(name, ()) for name in calls)
    while True:
        made = Contest(calls, DECIDED_BLOCKS, clock).run()
        baseline, timing = (Timing(one.name, one.seconds + made[one.name].seconds) for one in (baseline, timing))
        spent = sum(baseline.seconds + timing.seconds) * clock.count
        low, high = paired_interval(baseline, timing)
        if high - low <= NARROW or spent > DECIDED_SECONDS:
            return baseline, timing


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
