"""The CUDA driver: kernels as nodes of a graph, and other threads' calls beside a capture of one.

Addresses of a node are set before each launch, which takes the host less time than launches of kernels.

On an H200 a launch by cuLaunchKernel, with what Triton does for it, takes 6.4 us of the host, that of a graph of one
node 3.1, of two 5.0: 0.7 to set the arguments of a kernel, 1.9 and 2.8 to launch the graph. With the
checks of `Relaunch` a node takes 4.1 us, the launch without a graph 7.0.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import weakref
from collections.abc import Iterator, Sequence
from ctypes import POINTER, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from functools import cache
from types import SimpleNamespace
from typing import Any

from ..arrays import Tensor

NUMBERS: dict[str, Any] = {
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "fp32": ctypes.c_float,
    "fp64": ctypes.c_double,
}
"""The types of numbers among the arguments of a kernel, by Triton's names."""

CONSTANT = "constexpr"
"""Triton's type of arguments that are compiled into a kernel."""

SCRATCH = 2
"""Number of addresses of scratch memory that Triton appends to the arguments, null where a kernel has none."""

COOPERATIVE = 2
"""CU_LAUNCH_ATTRIBUTE_COOPERATIVE: all programs of a launch are resident at once."""

WARP = 32
"""Threads of a warp."""

MOST_GRAPHS = 512
"""Graphs that are alive at a time: each holds memory of the driver."""

Addresses = list[c_void_p | int | None]
"""The addresses of tensors, as ctypes types them."""


class Parameters(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v1."""

    _fields_ = (
        ("function", c_void_p),
        *((name, c_uint) for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared")),
        ("arguments", c_void_p),
        ("extra", c_void_p),
    )


class Driver(SimpleNamespace):
    """The functions of the CUDA driver that are called, by what they do; each returns 0, or its error."""


@cache
def driver() -> Driver | None:
    """Return the driver's functions; None where there is no CUDA driver, or one that is too old (before 12.4)."""

    def function(name: str, *types: Any) -> Any:
        found = library[name]
        found.restype, found.argtypes = c_int, types
        return found

    handle = POINTER(c_void_p)
    try:
        library: Any = ctypes.CDLL("libcuda.so.1")
        return Driver(
            create=function("cuGraphCreate", handle, c_uint),
            add_kernel=function("cuGraphAddKernelNode", handle, c_void_p, handle, c_size_t, POINTER(Parameters)),
            add_graph=function("cuGraphAddChildGraphNode", handle, c_void_p, handle, c_size_t, c_void_p),
            begin_capture=function("cuStreamBeginCapture_v2", c_void_p, c_int),
            end_capture=function("cuStreamEndCapture", c_void_p, handle),
            set_attribute=function("cuGraphKernelNodeSetAttribute", c_void_p, c_int, c_void_p),
            instantiate=function("cuGraphInstantiateWithFlags", handle, c_void_p, c_ulonglong),
            destroy=function("cuGraphDestroy", c_void_p),
            parameter_size=function("cuFuncGetParamInfo", c_void_p, c_size_t, POINTER(c_size_t), POINTER(c_size_t)),
            set_arguments=function("cuGraphExecKernelNodeSetParams", c_void_p, c_void_p, c_void_p),
            launch=function("cuGraphLaunch", c_void_p, c_void_p),
            free=function("cuGraphExecDestroy", c_void_p),
        )
    except (OSError, AttributeError):
        return None


RELAXED = 2
"""CU_STREAM_CAPTURE_MODE_RELAXED."""


@contextlib.contextmanager
def beside_captures() -> Iterator[None]:
    """Within a with block this thread may allocate and query while another one captures a CUDA graph.

    By default such calls of any thread fail, and break the capture (cuThreadExchangeStreamCaptureMode in the CUDA
    driver API).
    """
    exchange, mode = _exchange(), ctypes.c_int(RELAXED)
    exchange(ctypes.byref(mode))
    try:
        yield
    finally:
        exchange(ctypes.byref(mode))


@cache
def _exchange() -> Any:
    """Return the driver's function, or one that does nothing: HIP has another one."""
    with contextlib.suppress(OSError, AttributeError):
        return ctypes.CDLL("libcuda.so.1").cuThreadExchangeStreamCaptureMode
    return lambda mode: None


class KernelNode:
    """A compiled kernel with fixed numbers and changing tensors, as a node of one graph. See `node_of`."""

    def __init__(self, parameters: Parameters, values: list[Any], count: int, cooperative: bool) -> None:
        """The first `count` values are the addresses of tensors."""
        self._values, self._parameters, self._cooperative = values, parameters, cooperative
        self.addresses = (c_void_p * count)(*(one.value for one in values[:count]))
        at = [ctypes.addressof(self.addresses) + i * ctypes.sizeof(c_void_p) for i in range(count)]
        self._pointers = (c_void_p * len(values))(*at, *map(ctypes.addressof, values[count:]))
        parameters.arguments = ctypes.addressof(self._pointers)
        self.parameters_at = ctypes.addressof(parameters)
        self.handle = 0

    def add_to(self, graph: c_void_p, functions: Driver, *after: c_void_p) -> bool:
        """Add the node to a graph, after these of its others; return whether the driver has done so."""
        node = c_void_p()
        if functions.add_kernel(node, graph, _array(after), len(after), self._parameters):
            return False
        self.handle = node.value or 0
        # The union CUkernelNodeAttrValue has 64 bytes; that of this attribute is an int.
        value = (c_int * 16)(1)
        return not (self._cooperative and functions.set_attribute(node, COOPERATIVE, ctypes.addressof(value)))


class KernelGraph:
    """An executable graph of kernels on the current device. See `graph_of`."""

    def __init__(self, nodes: Sequence[KernelNode], functions: Driver) -> None:
        self._nodes = [(node.addresses, node.handle, node.parameters_at) for node in nodes]
        self._known: list[Addresses | None] = [None] * len(nodes)
        self._kept = nodes
        self._set, self._launch = functions.set_arguments, functions.launch
        self._lock = threading.Lock()
        self._graph = 0

    def instantiate(self, graph: c_void_p, functions: Driver) -> bool:
        """Make the graph executable; return whether the driver has done so. `graph` is freed with this object."""
        weakref.finalize(self, functions.destroy, graph.value).atexit = False
        made = c_void_p()
        if functions.instantiate(made, graph, 0):
            return False
        weakref.finalize(self, functions.free, made.value).atexit = False
        self._graph = made.value or 0
        return True

    def launch(self, *addresses: Addresses) -> bool:
        """Launch the kernels on the default stream, each with its tensors; return whether the driver has queued them.

        The device's context must be current in this thread, or the driver crashes.
        """
        with self._lock:  # another thread may not set its addresses in between
            known = self._known
            for i, values in enumerate(addresses):
                if known[i] == values:
                    continue
                places, node, parameters = self._nodes[i]
                places[:], known[i] = values, None
                if self._set(self._graph, node, parameters):
                    return False
                known[i] = values
            return not self._launch(self._graph, None)


def graph_of(nodes: Sequence[KernelNode | None], then: tuple[c_void_p, KernelNode] | None = None) -> KernelGraph | None:
    """Return the executable graph of nodes that are in no other graph, which run in any order.

    After them `then` runs: a copy of a graph of the driver, and last another node. None if a node is None, MOST_GRAPHS
    are alive, or the driver refuses.
    """
    functions, graph, inner = driver(), c_void_p(), c_void_p()
    kept = [node for node in nodes if node is not None]
    if functions is None or len(kept) < len(nodes) or len(_alive) >= MOST_GRAPHS:
        return None
    with beside_captures():
        if functions.create(graph, 0):
            return None
        added = [node.add_to(graph, functions) for node in kept]
        if then is not None:
            captured, last = then
            before = [c_void_p(node.handle) for node in kept]
            added.append(not functions.add_graph(inner, graph, _array(before), len(before), captured))
            added.append(last.add_to(graph, functions, inner))
            kept.append(last)
        made = KernelGraph(kept, functions)
        if not (made.instantiate(graph, functions) and all(added)):
            return None
        _alive.add(made)
        return made


def _array(handles: Sequence[c_void_p]) -> Any:
    return (c_void_p * len(handles))(*handles) if handles else None


_alive: weakref.WeakSet[KernelGraph] = weakref.WeakSet()


def node_of(
    compiled: Any, sizes: tuple[int, ...], tensors: Sequence[Tensor], numbers: Sequence[Any]
) -> KernelNode | None:
    """Return the node of a compiled Triton kernel with a grid of these sizes on the current GPU, or None.

    `numbers`: all arguments after the tensors. None if the arguments that the driver knows of the kernel are others
    than these (as of tensor descriptors), for clusters, dependent launches and scratch memory, and without a driver.
    """
    functions, metadata = driver(), compiled.metadata
    others = "launch_pdl", "global_scratch_size", "profile_scratch_size"
    if functions is None or any(getattr(metadata, name, 0) for name in others) or getattr(metadata, "num_ctas", 1) > 1:
        return None
    types, values = list(compiled.src.signature.values()), [*tensors, *numbers]
    if len(types) != len(values) or not all(str(kind).startswith("*") for kind in types[: len(tensors)]):
        return None
    made = [_argument(one, kind) for one, kind in _flat(values, types) if kind != CONSTANT]
    if any(one is None for one in made):
        return None
    count = _parameter_count(functions, compiled.function, made)
    if count < len(made):
        return None
    made += [c_void_p()] * (count - len(made))
    parameters = Parameters(compiled.function, *sizes, WARP * metadata.num_warps, 1, 1, metadata.shared)
    return KernelNode(parameters, made, len(tensors), bool(getattr(metadata, "launch_cooperative_grid", False)))


def _flat(values: Sequence[Any], types: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield all values with their types, those of tuples one by one, in the order of the kernel's arguments."""
    for value, kind in zip(values, types, strict=True):
        if isinstance(kind, tuple):
            yield from _flat(value, kind)
        else:
            yield value, kind


def _argument(value: Any, kind: str) -> Any:
    """Return a value as the C object of a kernel's argument; None for one that is neither an address nor a number."""
    if kind.startswith("*"):
        return c_void_p(value.data_ptr())
    return NUMBERS[kind](value) if kind in NUMBERS else None


def _parameter_count(functions: Driver, function: int, values: Sequence[Any]) -> int:
    """Return the number of arguments of a kernel, if these are the first ones by their sizes, else 0."""
    size, offset = c_size_t(), c_size_t()
    count = 0
    while count < len(values) + SCRATCH and not functions.parameter_size(function, count, offset, size):
        if size.value != (ctypes.sizeof(values[count]) if count < len(values) else ctypes.sizeof(c_void_p)):
            return 0
        count += 1
    return count
