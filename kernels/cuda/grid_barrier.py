"""Counters of barriers across the programs of a launch, and the memory by which its stages hand over."""

from __future__ import annotations

import threading
from typing import Any

Tensor = Any

APART = 32
"""Distance of counters in int32: a cache line each."""

SLOTS = 4096
"""Maximum number of counters of a device."""

_lock = threading.Lock()
_slabs: dict[Any, Tensor] = {}
_taken: dict[Any, dict[Any, int]] = {}
_of_stream: dict[tuple[Any, int], Tensor] = {}
_buffers: dict[tuple[Any, int, Any], Tensor] = {}


def counter_for(device: Any) -> Tensor:
    """Return a zeroed int32 that no other launch uses at the same time, for a barrier that restores its low bits.

    Launches of one stream share one. Each launch captured by a CUDA graph has its own, since graphs may run
    concurrently; after SLOTS of these a graph zeroes new ones itself, with one more launch.
    """
    import torch

    if device.type == "meta":
        return torch.empty(1, dtype=torch.int32, device=device)
    capturing = torch.cuda.is_current_stream_capturing()
    stream = torch._C._cuda_getCurrentRawStream(device.index)  # of torch.cuda.current_stream, in a tenth of its time
    if not capturing and (known := _of_stream.get((device, stream))) is not None:
        return known
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
        found = _slabs[device][place : place + 1]
        if not capturing:
            _of_stream[device, stream] = found
        return found


def buffer_for(like: Tensor, size: int) -> Tensor:
    """Return memory of at least `size` elements, of the dtype and device of a tensor, for the stages of one launch.

    Launches of one stream share it: each is done with it before the next one begins. A captured launch has its own.
    """
    import torch

    device = like.device
    if device.type != "cuda" or torch.cuda.is_current_stream_capturing():
        return like.new_empty(size)
    key = device, torch._C._cuda_getCurrentRawStream(device.index), like.dtype
    found = _buffers.get(key)
    if found is None or found.numel() < size:
        found = _buffers[key] = like.new_empty(size)
    return found
