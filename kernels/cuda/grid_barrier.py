"""Counters of barriers across the programs of a launch, and the memory by which its stages hand over."""

from __future__ import annotations

import threading
from typing import Any

from ..arrays import Tensor, torch

APART = 32
"""Distance of counters in int32: a cache line each."""

SLOTS = 4096
"""Maximum number of counters of a device."""

_lock = threading.Lock()
_slabs: dict[Any, Tensor] = {}
_taken: dict[Any, dict[Any, int]] = {}
_of_stream: dict[tuple[Any, int, Any], tuple[Tensor, Tensor]] = {}


def barrier_memory(like: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return memory of at least `size` elements of a tensor's dtype, and a zeroed int32, for the stages of one launch.

    No other launch uses them at the same time: those of one stream share them, since each is done before the next one
    begins, and a launch captured by a CUDA graph has its own, since graphs may run concurrently. The barrier restores
    the low bits of the counter; after SLOTS counters a graph zeroes new ones itself, with one more launch.
    """
    device = like.device
    if device.type == "meta":
        return like.new_empty(size), torch.empty(1, dtype=torch.int32, device=device)
    capturing = torch.cuda.is_current_stream_capturing()
    stream = torch._C._cuda_getCurrentRawStream(device.index)  # of torch.cuda.current_stream, in a tenth of its time
    key = device, stream, like.dtype
    if not capturing and (known := _of_stream.get(key)) is not None and known[0].numel() >= size:
        return known
    found = like.new_empty(size), _counter(device, stream, capturing)
    if not capturing:
        _of_stream[key] = found
    return found


def _counter(device: Any, stream: int, capturing: bool) -> Tensor:
    """Return the counter of a stream, or a new one for a captured launch."""
    with _lock:
        if device not in _slabs:
            if capturing:
                return torch.zeros(1, dtype=torch.int32, device=device)
            _slabs[device] = torch.zeros(SLOTS * APART, dtype=torch.int32, device=device)
            torch.cuda.synchronize(device)
            _taken[device] = {}
        taken = _taken[device]
        key = ("captured", len(taken)) if capturing else stream
        if key not in taken:
            if len(taken) >= SLOTS:
                return torch.zeros(1, dtype=torch.int32, device=device)
            taken[key] = len(taken)
        place = taken[key] * APART
        return _slabs[device][place : place + 1]
