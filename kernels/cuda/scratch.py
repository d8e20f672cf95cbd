"""Calls of executors on scratch tensors of a GPU, beside whatever other threads compute, record or capture there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from ..arrays import torch
from ..planning.strategy import Executor
from ..planning.trials.trial import BLOCK
from ..request import Request
from .bench import drawn_operands
from .kernel_node import beside_captures

AHEAD = 1_000_000
"""Cycles that the GPU waits before a batch of calls, about 0.5 ms: then it, not the host, sets the pace, as it does in
a graph."""


def free_bytes(index: int) -> float:
    """Return the bytes that are free on a GPU, those that torch keeps for its own use included."""
    with beside_captures():
        kept = torch.cuda.memory_reserved(index) - torch.cuda.memory_allocated(index)
        return float(torch.cuda.mem_get_info(index)[0] + kept)


@cache
def _stream(index: int) -> Any:
    """Return the stream of all scratch calls on a GPU: torch keeps freed memory for the stream that had it."""
    return torch.cuda.Stream(index)


def is_idle(index: int) -> bool:
    """Return whether a GPU has finished what was launched on its default stream."""
    with beside_captures():
        return torch.cuda.default_stream(index).query()


@contextlib.contextmanager
def scratch_calls(request: Request, index: int, after: bool) -> Iterator[Callable[[Executor], None]]:
    """Yield a function that runs an executor a few times on operands of a request, and waits for the GPU.

    Within the with block this thread is on a stream of its own, without gradients and autocast. float32 is multiplied
    by torch's current setting of tf32, which is not changed. With `after` the calls wait for what the caller's stream
    has to do.
    """
    stream = _stream(index)
    with beside_captures(), torch.cuda.device(index):
        if after:
            stream.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.autocast("cuda", enabled=False), torch.cuda.stream(stream):
            a, b, _ = drawn_operands(request, 0)

            def run(executor: Executor) -> None:
                torch.cuda._sleep(AHEAD)
                for _ in range(BLOCK):
                    executor.run(a, b)
                stream.synchronize()

            yield run
