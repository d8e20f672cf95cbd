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

from ...errors import VerificationError
from ...kernels.precision import TF32, arithmetic_of

BLOCK_SECONDS = 0.02
"""Seconds of a block of the vendor's calls, at least one call."""

VENDOR_EVERY = 4
"""Blocks of ours between two of the vendor's, until the class is decided."""

CALLS, SECONDS, LONGEST = 60, 30.0, 150.0
"""The loop ends after so many calls and seconds, and after a decision; LONGEST seconds end it in any case."""

DECIDED_BLOCKS = 20
"""Interleaved blocks after the decision."""

Call = Callable[[], object]


MOST_ERROR = {"float32": 1e-4, "float64": 1e-12, "tf32": 1e-2, "bfloat16": 5e-2, "fp32-accurate": 1e-4}
"""Largest relative Frobenius distance between our product and the vendor's."""


def operands(device: str, kind: str, dtype: str, shape: list[int], seed: int) -> tuple[Call, dict[str, Call], Call]:
    """Return our call, the vendor's by library, and a function that waits for the device."""
    import lcma

    m, k, n = shape
    if device == "cpu":
        rng = np.random.default_rng(seed)
        a, b = (rng.standard_normal(size).astype(dtype) for size in ((m, k), (k, n)))
        if kind == "causal":
            q, keys = a, b.T.copy()
            return (lambda: lcma.causal_qk(q, keys)), {"numpy": lambda: np.tril(q @ keys.T)}, (lambda: None)
        return (lambda: lcma.matmul(a, b)), {"numpy": lambda: np.matmul(a, b)}, (lambda: None)
    import torch

    stored, precision = arithmetic_of(dtype)
    torch.backends.cuda.matmul.allow_tf32 = precision == TF32
    plain = getattr(torch, stored)
    generator = torch.Generator("cuda").manual_seed(seed)
    x, y = (torch.randn(size, generator=generator, device="cuda", dtype=plain) for size in ((m, k), (k, n)))
    chosen = None if precision == TF32 else precision
    ours: Any = lcma.matmul
    return (lambda: ours(x, y, precision=chosen)), {"torch": lambda: torch.matmul(x, y)}, torch.cuda.synchronize


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of one row: first calls, the loop over the vendor's time, the decision, the ratio after it."""
    from ...kernels.learning import learner

    ours, vendors, wait = operands(task["device"], task["kind"], task["dtype"], task["shape"], task["seed"])

    def timed(call: Call, count: int = 1) -> float:
        wait()
        began = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        return (time.perf_counter() - began) / count

    for call in vendors.values():
        timed(call)  # starts the library
    first_ours = timed(ours)
    _check(ours, vendors, task["dtype"])
    count = max(1, math.ceil(BLOCK_SECONDS / min(timed(call) for call in vendors.values())))
    theirs: dict[str, list[float]] = {name: [timed(call, count)] for name, call in vendors.items()}
    spent, calls, blocks, decided = 0.0, 0, 0, None
    began = time.perf_counter()
    while True:
        seconds = timed(ours, count)
        spent, calls, blocks = spent + seconds * count, calls + count, blocks + 1
        elapsed = time.perf_counter() - began
        lesson = _lesson()
        if decided is None and lesson is not None and lesson.trial.decided and lesson.trial.median is not None:
            decided = elapsed
        if blocks % VENDOR_EVERY == 0:
            for name, call in vendors.items():
                with learner.compiler_stopped():
                    theirs[name].append(timed(call, count))
        long_enough = calls >= CALLS and spent >= SECONDS
        if (long_enough and decided is not None) or elapsed > LONGEST:
            break
    vendor = min(statistics.fmean(each) for each in theirs.values())
    figures = {
        "calls": calls,
        "vendor_ms": 1e3 * vendor,
        "first_extra_s": first_ours - vendor,
        "total": spent / (calls * vendor),
        "over_s": spent - calls * vendor,
        "allowed_s": 0.03 * calls * vendor + 0.1,
        "decided_s": decided,
    }
    _check(ours, vendors, task["dtype"])  # by the winner now
    figures |= _after(ours, vendors, timed, count)
    return figures | {"plan": None if lesson is None else str(lesson.plan.candidate)}


def _check(ours: Call, vendors: dict[str, Call], dtype: str) -> None:
    """Compare our product with the vendor's.

    Raises:
        VerificationError: they differ by more than rounding.
    """
    result: Any = ours()
    for call in vendors.values():
        wanted: Any = call()
        distance = float(((result - wanted) ** 2).sum() / (wanted**2).sum()) ** 0.5
        if not distance <= MOST_ERROR[dtype]:
            raise VerificationError(f"the product differs from the vendor's by {distance:.1e}")


def _after(ours: Call, vendors: dict[str, Call], timed: Callable[[Call, int], float], count: int) -> dict[str, float]:
    """Return the vendor's time over ours in interleaved blocks, with a 95% interval by a bootstrap."""
    ratios = []
    for number in range(DECIDED_BLOCKS):
        first = timed(ours, count) if number % 2 else None  # a GPU that was idle runs faster: each side goes first
        each = min(timed(call, count) for call in vendors.values())
        ratios.append(each / (timed(ours, count) if first is None else first))
    rng = np.random.default_rng(0)
    drawn = np.median(rng.choice(ratios, (2000, len(ratios))), axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return {"after": statistics.median(ratios), "after_low": float(low), "after_high": float(high)}


def _lesson() -> Any:
    from ...kernels.learning import learner

    return next((one for one in learner.lessons() if one.calls), None)


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
