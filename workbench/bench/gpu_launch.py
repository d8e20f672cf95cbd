"""The overhead of a call over the vendor's product on a GPU, for matrices too small to matter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .case import Figures, Say
from .contest import Call
from .gpu_products import Tensor, ahead, operands

TWO = "strassen/strassen"

SIZES = (64, 64, 64)


def launch(seed: int, say: Say) -> Figures:
    """Microseconds added to torch's product of 64 x 64 matrices: by `auto`, and by two levels in three stages.

    "graph" is what the three stages add where both are replayed from CUDA graphs.
    """
    import torch

    from ...kernels.cuda.clock import settled
    from ...kernels.torch.ops import bilinear_mm, matmul

    a, b = operands("float32", SIZES, seed)
    vendor, auto, stages = (
        settled(call) for call in (lambda: a @ b, lambda: matmul(a, b), lambda: bilinear_mm(a, b, TWO))
    )
    replayed = [settled(graphed(call, a, b)) for call in (torch.matmul, partial(bilinear_mm, recipe=TWO))]
    return {
        "us": 1e6 * (auto - vendor),
        "stages_us": 1e6 * (stages - vendor),
        "graph_us": 1e6 * (replayed[1] - replayed[0]),
        "vendor_us": 1e6 * vendor,
    }


def graphed(call: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor) -> Call:
    """The call as a CUDA graph that is replayed; returns the tensor in which its result stands."""
    import torch

    call(a, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call(a, b)

    def replay() -> Tensor:
        graph.replay()
        return result

    return replay


def launch_ahead() -> None:
    """The kernels of `launch`."""
    ahead(TWO, "float32", SIZES)
