"""A product by the sums of its operands, repeated as one CUDA graph: the host queues it in one call.

On an H200 the host needs 13 us for three levels of Strassen's scheme, 4096 cubed in float32, 35 to 45 us if it launches
the four kernels one by one, and 14 to 21 us for torch.matmul.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_void_p
from functools import cache
from typing import Any

from ..arrays import Tensor, torch
from .kernel_node import RELAXED, KernelGraph, beside_captures, driver, graph_of
from .launch import REPETITIONS, Repeated, allows_graphs

STEP = 512
"""Bytes of which the parts of the scratch memory begin at multiples, as what torch allocates does."""

MOST_PLACES = 4
"""Addresses of scratch memory for which a product keeps graphs: eager calls in a row get one or two."""

REDUCES = {
    "float16": "allow_fp16_reduced_precision_reduction",
    "bfloat16": "allow_bf16_reduced_precision_reduction",
}
"""Torch's settings of cuBLAS by the dtype whose products depend on them; that for tf32 is in the plan."""

MOST_SEEN = 64
"""Addresses whose calls are counted; then counting begins anew."""


class RepeatedProduct:
    """C = A B for operands of fixed shapes and strides: A~ and B~, their products, and the merge of these.

    `launches` write A~ and B~ of a matrix and C of the products, `multiply` computes products from A~ and B~, which
    have these `shapes` (slabs, rows, columns). All three lie in scratch memory that torch allocates for every call.
    Calls in a row get the same memory, and what was called REPETITIONS times at an address becomes a graph for it.
    """

    def __init__(
        self,
        launches: Sequence[Repeated],
        multiply: Callable[[Tensor, Tensor, Tensor], None],
        shapes: Sequence[tuple[int, ...]],
        out: Tensor,
    ) -> None:
        """`out`: a result."""
        (self._split_a, self._split_b, self._merge), self._multiply = launches, multiply
        self._shapes, self._index = shapes, out.get_device()
        step = STEP // out.element_size()
        self._starts = [0]
        for shape in shapes:
            self._starts.append(self._starts[-1] - -math.prod(shape) // step * step)
        # One element in the shapes of what a call allocates: by a model that takes half as long as by sizes.
        self._of_out, self._of_scratch = (out.new_empty(1).expand(size) for size in (out.shape, self._starts[-1]))
        self._offsets = [start * out.element_size() for start in self._starts]
        self._setting, self._set = REDUCES.get(str(out.dtype).removeprefix("torch.")), None
        self._graphs: dict[int, KernelGraph | None] = {}
        self._seen: dict[int, int] = {}
        self._wanted = REPETITIONS

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        """Return C of a (m, k) and b (k, n), whose addresses are multiples of ALIGNMENT."""
        out, scratch = torch.empty_like(self._of_out), torch.empty_like(self._of_scratch)
        place = scratch.data_ptr()
        if self._setting and self._set != (setting := getattr(torch.backends.cuda.matmul, self._setting)):
            self._set = setting
            self._graphs.clear()
        if (graph := self._graphs.get(place)) is not None and allows_graphs(self._index):
            _, rights, products, _ = self._offsets
            at_a, at_b, at_c = a.data_ptr(), b.data_ptr(), out.data_ptr()
            if graph.launch([at_a, place], [at_b, place + rights], [at_c, place + products]):
                return out
        parts = self._parts(scratch)
        lefts, rights, products = parts
        self._split_a(a, lefts)
        self._split_b(b, rights)
        self._multiply(lefts, rights, products)
        self._merge(out, products)
        if place not in self._graphs and allows_graphs(self._index):
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            self._seen[place] = self._seen.get(place, 0) + 1
            if self._seen[place] >= self._wanted:
                self._keep(place, self._graph((a, b, out), parts))
        return out

    def _keep(self, place: int, graph: KernelGraph | None) -> None:
        """Keep the graph of an address instead of the oldest one; the next one, slow to make, needs more calls."""
        if len(self._graphs) >= MOST_PLACES:
            self._graphs.pop(next(iter(self._graphs)), None)
        self._graphs[place] = graph
        self._seen.clear()
        self._wanted += REPETITIONS

    def _parts(self, scratch: Tensor) -> list[Tensor]:
        """Return A~, B~ and their products, as views of the scratch memory."""
        starts = zip(self._starts, self._shapes, strict=False)
        return [scratch[start : start + math.prod(shape)].view(shape) for start, shape in starts]

    def _graph(self, matrices: Sequence[Tensor], parts: Sequence[Tensor]) -> KernelGraph | None:
        """Return the graph of a call on these tensors, or None."""
        repeats = [launch.aligned for launch in (self._split_a, self._split_b, self._merge)]
        nodes = [
            None if one is None else one.node(pair)
            for one, pair in zip(repeats, zip(matrices, parts, strict=True), strict=True)
        ]
        *splits, merge = nodes
        if merge is None:
            return None
        with captured(lambda: self._multiply(*parts), self._index) as products:
            return None if products is None else graph_of(splits, (products, merge))


@contextlib.contextmanager
def captured(work: Callable[[], None], index: int) -> Iterator[c_void_p | None]:
    """Yield what `work` launches on GPU `index`, as a graph of the driver that is freed afterwards; None if it cannot.

    The driver captures, not torch: during a capture of torch's, other threads could draw no random numbers.
    """
    functions, graph = driver(), c_void_p()
    if functions is None:
        yield None
        return
    failed = True
    try:
        with _capturing, beside_captures():
            stream, memory = _captures(index)
            # What cuBLAS allocates for itself belongs to the graph as long as the process lives.
            with torch.cuda.use_mem_pool(memory), torch.cuda.stream(stream):
                failed = bool(functions.begin_capture(stream.cuda_stream, RELAXED))
                if not failed:
                    try:
                        work()
                    except RuntimeError:
                        failed = True
                    finally:  # a stream whose capture does not end captures nothing any more
                        failed |= bool(functions.end_capture(stream.cuda_stream, graph))
        yield None if failed else graph
    finally:
        if graph:
            functions.destroy(graph)


@cache
def _captures(index: int) -> tuple[Any, Any]:
    """Return the stream on which GPU `index` captures, and the memory that the captured kernels keep."""
    with torch.cuda.device(index):
        return torch.cuda.Stream(), torch.cuda.MemPool()


_capturing = threading.Lock()
