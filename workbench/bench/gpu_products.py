"""Functions shared by the rows of products on a GPU: operands, errors, interleaved ratios to torch's product."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import VerificationError
from ...kernels.arrays import Tensor, torch
from ...kernels.cuda.bench import drawn_operands
from ...kernels.cuda.machine import require_device
from ...kernels.precision import TF32, fields_of
from ...kernels.request import Layout, Request
from ...kernels.torch import dispatch
from ...kernels.torch.recipe import ProductRecipe
from ..products import Sizes
from .case import Say
from .contest import Call, Calls, Contest, CudaClock, Judge, Truth, paired_ratios

LIMIT = 25.0
"""Most times the vendor's error that a product by a scheme may have; three levels in bfloat16 have 14."""

CHECKED_ROWS = 256
"""Rows of C that are compared with float64."""

RATES = {"bfloat16": 7e14, "float16": 7e14, "tf32": 3.5e14, "float32": 5e13, "float64": 5.5e13}
"""About what the vendor's product reaches on an H200, flops per second."""

SPENT = 0.15
"""Seconds that a contender runs in a round."""


def request_for(dtype: str, sizes: Sizes, columns: bool = False) -> Request:
    """Return the request of a product on a GPU whose operands are stored by rows, or both by columns."""
    side = Layout.COLUMNS if columns else Layout.ROWS
    return Request(*sizes, device="cuda", layouts=(side, side, Layout.ROWS), **fields_of(dtype))


def operands(
    dtype: str, sizes: Sizes, seed: int = 0, columns: bool = False, blank: bool = False
) -> tuple[Tensor, Tensor]:
    """Standard normal matrices, or `blank` ones without data; for tf32, torch is set to multiply float32 in tf32."""
    if not blank:
        require_device()
    request = request_for(dtype, sizes, columns)
    torch.backends.cuda.matmul.allow_tf32 = request.precision == TF32
    a, b, _ = drawn_operands(request, seed, blank)
    return a, b


def ahead(recipe: str, dtype: str, sizes: Sizes, columns: bool = False) -> None:
    """A product by a recipe on operands without data, for `Case.ahead`."""
    require_device()
    dispatch.run(ProductRecipe.parse(recipe), *operands(dtype, sizes, columns=columns, blank=True))


def all_ahead(*products: tuple[Any, ...]) -> None:
    """Several products, each by the arguments of `ahead`."""
    for product in products:
        ahead(*product)


def graphed(call: Call) -> Call:
    """The call as a CUDA graph that is replayed; returns what the captured one returned. It runs thrice before."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()

    def replay() -> Any:
        graph.replay()
        return result

    return replay


def peak_bytes(call: Call) -> int:
    """Bytes that a call allocates at most beside what was there, its result included; it runs once before."""
    call()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    found = call()
    torch.cuda.synchronize()
    del found
    return int(torch.cuda.max_memory_allocated() - before)


class VendorJudge:
    """A judge of products of a and b, whose errors must not be too far from `vendor`: `floor` above torch's own."""

    def __init__(self, a: Tensor, b: Tensor, floor: float = 0.0) -> None:
        self._truth = Truth(a, b, CHECKED_ROWS)
        self.vendor = self._truth.error(torch.matmul(a, b)) + floor
        # In float64 torch's own product is the truth: what a sum of k rounded terms may be off stands in for its error.
        self._expected = max(self.vendor, torch.finfo(a.dtype).eps * a.shape[-1] ** 0.5 / 2)

    def __call__(self, name: str, c: Tensor) -> float:
        """See `contest.Judge`."""
        error = self._truth.error(c)
        if not error <= LIMIT * self._expected:
            wrong = f"error {error:.1e}, torch's {self.vendor:.1e}"
            raise VerificationError(f"{name} came out wrong: {wrong}; nothing was timed")
        return error


def paired(
    calls: Calls, sizes: Sizes, rounds: int, say: Say, spent: float = SPENT, judge: Judge | None = None
) -> dict[str, Any]:
    """Paired ratios of "vendor" to the others ("ratio" is that of "online"), and what the clock and power were.

    A contender runs for about `spent` seconds a round. `errors`: those of a judge.
    """
    times = Contest(calls, rounds, CudaClock(spent), say, judge, monitored=True).run()
    m, k, n = sizes
    figures: dict[str, Any] = {"flops_per_element": intensity(sizes)}
    for name, timing in times.items():
        figures[f"{name}_ms"] = 1e3 * timing.median
        figures[f"{name}_tflops"] = 2e-12 * m * k * n / timing.median
        if name != "vendor":
            ratios, label = paired_ratios(times["vendor"], timing), "ratio" if name == "online" else name
            figures[label] = float(np.median(ratios))
            figures[f"{label}_range"] = [float(ratios.min()), float(ratios.max())]
    assert times.gpu is not None  # monitored
    figures |= {"clock_mhz": times.gpu.clock_mhz, "power_w": times.gpu.power_w}
    return figures | ({"errors": times.errors} if judge is not None else {})


def intensity(sizes: Sizes) -> float:
    """Operations of a product per element of A, B and C."""
    m, k, n = sizes
    return 2 * m * k * n / (m * k + k * n + m * n)
