"""Launching of a kernel, and its repetition; on tensors without data (torch's meta device) it is only compiled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache, partial
from typing import Any

from ..arrays import Tensor, torch
from .kernel_node import Addresses, KernelGraph, KernelNode, graph_of, node_of

ALIGNMENT = 16
"""Bytes: Triton compiles a kernel for pointers that are multiples of it, and another one for others."""

MOST_ITEMS = 65535
"""Maximum number of matrices of a batch per launch: the limit of the second axis of a grid."""

REPETITIONS = 8
"""Launches after which a kernel becomes a graph: making one takes as long as a few launches."""


def on_device(x: Tensor) -> Any:
    """Return a context in which the tensor's device is the current one: Triton launches on that."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


def starter(kernel: Any, grid: tuple[int, ...], like: Tensor) -> Callable[..., Any]:
    """Return the function that launches a Triton kernel on tensors such as `like`, and returns the compiled kernel.

    Without data the kernel is specialised as for a launch and compiled (see precompile.py).
    """
    return partial(kernel.warmup, grid=grid) if like.is_meta else kernel[grid]


class Repeated:
    """A launch whose numbers and constants are fixed and whose tensors change: repeated by the compiled kernel itself.

    Triton's own call binds and specialises every argument again: 25 to 40 us of the host for twenty arguments. `names`
    are the tensors' parameters, the kernel's first ones, `numbers` those that follow, and `fixed` all other arguments
    and the compiler's options. Tensors must be on the same device, and have the same dtype and strides in all calls;
    their alignment is part of what is compiled.
    """

    def __init__(self, kernel: Any, grid: tuple[int, ...], names: tuple[str, ...], *numbers: int, **fixed: Any) -> None:
        self._kernel, self._grid, self._numbers, self._fixed = kernel, grid, numbers, fixed
        self.aligned: Relaunch | None = None
        self._other: dict[tuple[bool, ...], Relaunch] = {}
        parameters = list(getattr(kernel, "arg_names", ()))
        assert not parameters or tuple(parameters[: len(names)]) == names
        self._rest = *numbers, *(fixed.get(name) for name in parameters[len(names) + len(numbers) :])

    def __call__(self, *tensors: Tensor) -> None:
        """Launch on these tensors, in the order of `names`."""
        if not tensors[0].is_cuda:
            self._start(tensors)
            return
        addresses: Addresses = []
        joined = 0
        for tensor in tensors:
            address = tensor.data_ptr()
            addresses.append(address)
            joined |= address
        if not joined % ALIGNMENT:
            if (aligned := self.aligned) is not None:
                aligned(tensors, addresses)
            else:
                self.aligned = self._first(tensors)
            return
        alignment = tuple(tensor.data_ptr() % ALIGNMENT == 0 for tensor in tensors)
        if (other := self._other.get(alignment)) is not None:
            other(tensors, addresses)
        else:
            self._other[alignment] = self._first(tensors)

    def _first(self, tensors: Sequence[Tensor]) -> Relaunch:
        """Launch by Triton's own call, which compiles; return what repeats it."""
        with on_device(tensors[0]):
            compiled = self._start(tensors)
            _thread.has_launched = True
            return Relaunch(compiled, self._grid, tensors[0].get_device(), self._rest)

    def _start(self, tensors: Sequence[Tensor]) -> Any:
        return starter(self._kernel, self._grid, tensors[0])(*tensors, *self._numbers, **self._fixed)


class Relaunch:
    """Launches of one compiled kernel on GPU `index`; `numbers`: all arguments after the tensors.

    Triton's own call looks up the device, the stream and hooks through several objects, which takes microseconds. What
    is repeated where `allows_graphs` becomes a `KernelGraph`.
    """

    def __init__(self, compiled: Any, grid: tuple[int, ...], index: int, numbers: Sequence[Any]) -> None:
        self._compiled, self.index, self._numbers = compiled, index, numbers
        self._sizes = (*grid, 1, 1)[:3]
        self._run, self._function, self._packed = compiled.run, compiled.function, compiled.packed_metadata
        self._graph: KernelGraph | None = None
        self._left = REPETITIONS

    def __call__(self, tensors: Sequence[Tensor], addresses: Addresses) -> None:
        """Launch on tensors at these addresses."""
        if allows_graphs(index := self.index):
            if self._graph is not None and self._graph.launch(addresses):
                return
            self._left -= 1
            if not self._left:
                self._graph = graph_of([self.node(tensors)])
        elif torch._C._cuda_getDevice() != index:
            with torch.cuda.device(index):
                self(tensors, addresses)
            return
        if _is_watched():
            self._compiled[self._sizes](*tensors, *self._numbers)
            return
        stream = torch._C._cuda_getCurrentRawStream(index)
        self._run(*self._sizes, stream, self._function, self._packed, None, None, None, *tensors, *self._numbers)
        _thread.has_launched = True

    def node(self, tensors: Sequence[Tensor]) -> KernelNode | None:
        """Return the launch as a node of a graph, or None: see `node_of`."""
        return node_of(self._compiled, self._sizes, tensors, self._numbers)


def allows_graphs(index: int) -> bool:
    """Return whether kernels of GPU `index` may be launched by graphs now: it is the current one, on the default
    stream, which no graph captures, no profiler watches launches, and the device's context is current. -1 is no GPU.
    """
    torch_c = torch._C
    if index < 0 or torch_c._cuda_getDevice() != index or torch_c._cuda_getCurrentRawStream(index):
        return False
    return _thread.has_launched and not _is_watched()


def _is_watched() -> bool:
    """Return whether a profiler has set Triton's hooks of launches."""
    runtime = _runtime()
    enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
    return bool(getattr(enter, "calls", enter) or getattr(leave, "calls", leave))


@cache
def _runtime() -> Any:
    from triton import knobs

    return knobs.runtime


class _Thread(threading.local):
    has_launched = False
    """Whether Triton has made the device's context current in this thread, without which the driver crashes."""


_thread = _Thread()


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
