"""Launching of a kernel, and its repetition; on tensors without data (torch's meta device) it is only compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from ..arrays import Tensor, torch

ALIGNMENT = 16
"""Bytes: Triton compiles a kernel for pointers that are multiples of it, and another one for others."""


def on_device(x: Tensor) -> Any:
    """Return a context in which the tensor's device is the current one: Triton launches on that."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


def starter(kernel: Any, grid: tuple[int, ...], like: Tensor) -> Callable[..., Any]:
    """Return the function that launches a Triton kernel on tensors such as `like`, and returns the compiled kernel.

    Without data the kernel is specialised as for a launch and compiled (see precompile.py).
    """
    started: Callable[..., Any] = partial(kernel.warmup, grid=grid) if like.is_meta else kernel[grid]
    return started


def relauncher(compiled: Any, grid: tuple[int, ...], index: int) -> Callable[[Sequence[Any]], None]:
    """Return the function that launches a compiled kernel on GPU `index`, the current one, with all its arguments.

    Triton's own call looks up the device, the stream and hooks through several objects, which takes microseconds.
    """
    from triton import knobs

    run, function, packed, sizes = compiled.run, compiled.function, compiled.packed_metadata, (*grid, 1, 1)[:3]
    usual, runtime, stream_of = compiled[sizes], knobs.runtime, torch._C._cuda_getCurrentRawStream

    def launch(arguments: Sequence[Any]) -> None:
        enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
        if getattr(enter, "calls", enter) or getattr(leave, "calls", leave):  # a profiler watches launches
            usual(*arguments)
        else:
            run(*sizes, stream_of(index), function, packed, None, None, None, *arguments)

    return launch


class Repeated:
    """A launch whose numbers and constants are fixed and whose tensors change: repeated by the compiled kernel itself.

    Triton's own call binds and specialises every argument again: 25 to 40 us of the host for twenty arguments. `names`
    are the tensors' parameters, the kernel's first ones, `fixed` all other arguments and the compiler's options.
    Tensors must be on the same device, the current one, and have the same dtype and strides in all calls; their
    alignment is part of what is compiled.
    """

    def __init__(self, kernel: Any, grid: tuple[int, ...], names: tuple[str, ...], **fixed: Any) -> None:
        self._kernel, self._grid, self._names, self._fixed = kernel, grid, names, fixed
        self._aligned: Callable[[Sequence[Any]], None] | None = None
        self._repeat: dict[tuple[bool, ...], Callable[[Sequence[Any]], None]] = {}
        parameters = list(getattr(kernel, "arg_names", ()))
        assert not parameters or tuple(parameters[: len(names)]) == names
        self._numbers = [fixed.get(name) for name in parameters[len(names) :]]

    def __call__(self, *tensors: Tensor) -> None:
        """Launch on these tensors, in the order of `names`."""
        address = 0
        if self._aligned is not None:
            for tensor in tensors:
                address |= tensor.data_ptr()
            if not address % ALIGNMENT:
                self._aligned((*tensors, *self._numbers))
                return
        if not tensors[0].is_cuda:
            self._start(tensors)
            return
        aligned = tuple(tensor.data_ptr() % ALIGNMENT == 0 for tensor in tensors)
        if (repeat := self._repeat.get(aligned)) is not None:
            repeat((*tensors, *self._numbers))
            return
        repeat = self._repeat[aligned] = relauncher(self._start(tensors), self._grid, tensors[0].get_device())
        if all(aligned):
            self._aligned = repeat

    def _start(self, tensors: Sequence[Tensor]) -> Any:
        """Launch by Triton's own call, which compiles; return the compiled kernel."""
        started = starter(self._kernel, self._grid, tensors[0])
        return started(**dict(zip(self._names, tensors, strict=True)), **self._fixed)


def device_for(device: Any) -> Any:
    """Return the torch device of the kernels: tensors without data represent those of the current GPU."""
    if device.type == "meta" and torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return device


def on_current_gpu(missing: Callable[[Any], str | None]) -> str | None:
    """Return the reason of `missing` for the current GPU; None without a GPU: plans are for another machine."""
    try:
        import torch
    except ImportError:
        return None
    return missing(torch.device("cuda", torch.cuda.current_device())) if torch.cuda.is_available() else None
