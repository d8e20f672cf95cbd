"""Launching of a kernel, and its repetition; on tensors without data (torch's meta device) it is only compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

Tensor = Any

ALIGNMENT = 16
"""Bytes: Triton compiles a kernel for pointers that are multiples of it, and another one for others."""


def starter(kernel: Any, grid: tuple[int, ...], like: Tensor) -> Callable[..., Any]:
    """Return the function that launches a Triton kernel on tensors such as `like`, and returns the compiled kernel.

    Without data the kernel is specialised as for a launch and compiled (see precompile.py).
    """
    started: Callable[..., Any] = partial(kernel.warmup, grid=grid) if like.is_meta else kernel[grid]
    return started


class Repeated:
    """A launch whose numbers and constants are fixed and whose tensors change: repeated by the compiled kernel itself.

    Triton's own call binds and specialises every argument again: 25 to 40 us of the host for twenty arguments. `names`
    are the tensors' parameters, `fixed` all other arguments and the compiler's options. Tensors must be on the same
    device and have the same dtype and strides in all calls; their alignment is part of what is compiled.
    """

    def __init__(self, kernel: Any, grid: tuple[int, ...], names: tuple[str, ...], **fixed: Any) -> None:
        self._kernel, self._grid, self._names, self._fixed = kernel, grid, names, fixed
        self._repeat: dict[tuple[bool, ...], Callable[..., Any]] = {}
        parameters = list(getattr(kernel, "arg_names", ()))
        self._places = [parameters.index(name) for name in names if name in parameters]
        self._arguments = [fixed.get(name) for name in parameters]

    def __call__(self, *tensors: Tensor) -> None:
        """Launch on these tensors, in the order of `names`."""
        if tensors[0].is_cuda:
            aligned = tuple(tensor.data_ptr() % ALIGNMENT == 0 for tensor in tensors)
            if (repeat := self._repeat.get(aligned)) is not None:
                arguments = self._arguments.copy()
                for place, tensor in zip(self._places, tensors, strict=True):
                    arguments[place] = tensor
                repeat(*arguments)
                return
        compiled = starter(self._kernel, self._grid, tensors[0])(
            **dict(zip(self._names, tensors, strict=True)), **self._fixed
        )
        if tensors[0].is_cuda:
            self._repeat[aligned] = compiled[(*self._grid, 1, 1)[:3]]


def device_for(device: Any) -> Any:
    """Return the torch device of the kernels: tensors without data represent those of the current GPU."""
    import torch

    if device.type == "meta" and torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return device
