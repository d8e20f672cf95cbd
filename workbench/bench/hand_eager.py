"""One row of suite "hand" on a GPU: microseconds of the host for one eager call, ours and torch's, in one process.

Run as a module with a JSON object; prints one. The host's time is that of queueing calls, which the GPU runs later.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from typing import Any

import lcma

from ...kernels.arrays import torch
from ...kernels.learning import learner, paused
from .contest import Call, Contest, CpuClock, relative, require_right
from .table import LIMITS, rows

MODULES = {one.module: one for one in rows("hand_modules")}
"""What is called, at one token of bfloat16 (a layer by these arguments) or as a square of float32, and the bar over
torch's own call."""

INPUTS, OUTPUTS = 5120, 13824
"""The sizes of torch's layer."""

WARM, CALLS, ROUNDS = 200, 100, 15
"""Calls before timing; calls of a round, fewer than a GPU's queue holds; rounds."""

SHORTEST, LONGEST = 3.0, 60.0
"""Least and most seconds to wait for decisions: the background takes a second to learn of a class."""

LOOKS, MOST_CALLS = 2, 8000
"""Comparisons of a decided class, or calls of it, before timing."""


def layer_of(name: str) -> Any:
    """The layer of a row of MODULES."""
    return getattr(lcma, name)(*json.loads(MODULES[name].arguments), bias=False)


def calls(name: str, seed: int) -> tuple[dict[str, Call], Any]:
    """Return our call ("us"), torch's, both of layers by torch.compile, too, and our result in float64."""
    torch.manual_seed(seed)
    if name.startswith("matmul"):
        size = int(name.split()[1])
        a, b = torch.randn(2, size, size, device="cuda")
        ours: Any = lcma.matmul
        return {"us": lambda: ours(a, b), "torch_us": lambda: torch.matmul(a, b)}, a.double() @ b.double()
    layer = layer_of(name).to("cuda", torch.bfloat16).eval()
    x = torch.randn(1, layer.in_features, device="cuda", dtype=torch.bfloat16)
    dense = torch.nn.Linear(INPUTS, OUTPUTS, bias=False, device="cuda", dtype=torch.bfloat16)
    token = torch.randn(1, INPUTS, device="cuda", dtype=torch.bfloat16)
    compiled, dense_compiled = torch.compile(layer), torch.compile(dense)
    with torch.no_grad(), paused():
        wanted = copy.deepcopy(layer).double()(x.double())
    eager: dict[str, Call] = {"us": lambda: layer(x), "torch_us": lambda: dense(token)}
    return eager | {"compiled_us": lambda: compiled(x), "torch_compiled_us": lambda: dense_compiled(token)}, wanted


def _is_settled(lesson: Any) -> bool:
    """Return whether a class that is called is decided, and compared again so rarely that few calls notice it."""
    trial = lesson.trial
    return not lesson.calls or (trial.decided and (trial.looks >= LOOKS or lesson.calls > MOST_CALLS))


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Return the medians of interleaved rounds.

    Raises:
        VerificationError: a result of ours differs from that in float64 by more than rounding.
    """
    contenders, wanted = calls(task["module"], task["seed"])
    clock = CpuClock(CALLS, torch.cuda.synchronize, queued=True)  # one's queue would hide the host's time of the next

    def judge(name: str, result: Any) -> float:
        limit = LIMITS["eager call"][str(result.dtype).removeprefix("torch.")]
        return require_right(name, relative(result, wanted), limit, "relative error")

    with torch.no_grad():
        began = time.perf_counter()
        for call in contenders.values():
            for _ in range(WARM):
                call()
            torch.cuda.synchronize()
        while (waited := time.perf_counter() - began) < LONGEST:
            if waited > SHORTEST and all(map(_is_settled, learner.lessons())):
                break
            for call in contenders.values():
                clock.seconds(call)
        for name, call in contenders.items():
            if not name.startswith("torch"):
                judge(name, call())
        seconds = Contest(contenders, ROUNDS, clock).run().medians
    figures: dict[str, Any] = {name: 1e6 * one for name, one in seconds.items()}
    figures["over_torch"] = figures["us"] / figures["torch_us"]
    if "compiled_us" in figures:
        figures["compiled_over_eager"] = figures["compiled_us"] / figures["us"]
        figures["compiled_over_torch"] = figures["compiled_us"] / figures["torch_compiled_us"]
    plans = [str(lesson.plan.candidate) for lesson in learner.lessons() if lesson.calls]
    return figures | {"plan": ", ".join(dict.fromkeys(plans)) or None}


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
