"""Launching of a kernel; on tensors without data (torch's meta device) the kernel is only compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

Tensor = Any


def starter(kernel: Any, grid: tuple[int, ...], like: Tensor) -> Callable[..., Any]:
    """Return the function that launches a Triton kernel on tensors such as `like`, and returns the compiled kernel.

    Without data the kernel is specialised as for a launch and compiled (see precompile.py).
    """
    started: Callable[..., Any] = partial(kernel.warmup, grid=grid) if like.is_meta else kernel[grid]
    return started


def device_for(device: Any) -> Any:
    """Return the torch device of the kernels: tensors without data represent those of the current GPU."""
    import torch

    if device.type == "meta" and torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return device
