"""Timing of candidates on a GPU: operands, checks, and interleaved calls timed by the GPU's own events.

Their kernels are compiled in advance, also those of a product that the caller waits for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..arrays import Tensor, torch
from ..planning.strategy import Executor, Plan
from ..precision import TF32
from ..request import INT8, Layout, Request
from ..structure import Triangular, is_factored
from .clock import interleaved
from .kernel_node import beside_captures
from .precompile import compile_ahead, kernels_of

CHECKED = 128
"""Number of rows of C that are compared with a float64 reference."""

SPENT = 0.02
"""Seconds of one contender per round: long enough for the power limit to take effect over a few rounds."""

QUICK = 1.0
"""Seconds of compilation that are left to the launches: processes that compile take as long to start."""

CHARACTERS, POWER = 1.8e4, 1.8
"""A kernel of so many characters compiles in about a second, longer ones by this power of their length: measured for
sm_90 with Triton 3.7 on an EPYC, 0.07 s for 3,500 characters and 8.4 s for 60,000."""


class CudaBench:
    """A `planning.planner.Bench`. float32 is multiplied strictly, or rounded to tf32 if the request permits it."""

    def operands(self, request: Request, seed: int, blank: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """See `Bench.operands`: standard normal numbers, or integers up to `max_abs`.

        With `blank` tensors without data.
        """
        if not blank:
            torch.backends.cuda.matmul.allow_tf32 = request.precision == TF32
        return drawn_operands(request, seed, blank)

    def precompile(self, plans: Sequence[Plan], on_event: Callable[[str], None]) -> None:
        """Compile the kernels of many plans, by one process per core, into Triton's cache."""
        calls = [partial(run_kernels, plan) for plan in plans]
        compile_ahead(calls, lambda done, known: on_event(f"compiled {done} of {known} kernels"))

    def errors(self, request: Request, a: Tensor, b: Tensor) -> Callable[[Tensor], float]:
        """See `Bench.errors`; for a factored A, computed on some columns only."""
        if is_factored(factored := request.structures[0]):
            cols = torch.linspace(0, request.n - 1, min(request.n, CHECKED), device=b.device).long()
            double = torch.complex128 if b.is_complex() else torch.float64
            given = b[:, cols].to("cpu", double).numpy()
            wide = factored.multiply_wide([weights.to("cpu", double).numpy() for weights in a], given)
            exact = torch.from_numpy(wide)
            return lambda c: _relative(c[:, cols].to("cpu", double), exact)

        left, right = (x[(0,) * (x.dim() - 2)] for x in (a, b))
        rows = torch.linspace(0, request.m - 1, min(request.m, CHECKED), device=a.device).long()
        truth = left[rows].double() @ right.double()
        structure = request.structures[2]
        if isinstance(structure, Triangular):
            cols = torch.arange(request.n, device=a.device)[None, :]
            wanted = cols >= rows[:, None] if structure.upper else cols <= rows[:, None]
            truth = torch.where(wanted, truth, 0.0)
        first = (0,) * len(request.batch)
        return lambda c: _relative(c[first][rows].double(), truth)

    def interleaved(self, calls: Mapping[str, Callable[[], object]], rounds: int) -> Mapping[str, Sequence[float]]:
        return interleaved(calls, rounds, SPENT)


def drawn_operands(request: Request, seed: int, blank: bool = False) -> tuple[Any, Tensor, Tensor]:
    """Return `CudaBench.operands`, without a change of torch's setting of tf32."""
    generator = None if blank else torch.Generator("cuda").manual_seed(seed)
    device = "meta" if blank else "cuda"
    dtype = getattr(torch, request.dtype)
    found: list[Any] = []
    for place, shape in enumerate(request.shapes):
        if place == 0 and is_factored(factored := request.structures[0]):
            kind = request.dtype if dtype.is_complex else "float32"
            parameters = () if blank else factored.draw(np.random.default_rng(seed), kind)
            filled = [torch.from_numpy(weights).to(device, dtype) for weights in parameters]
            found.append(filled or [torch.empty(one, device=device, dtype=dtype) for one in factored.factor_shapes])
            continue
        columns = request.layouts[place] is Layout.COLUMNS
        size = (*shape[:-2], shape[-1], shape[-2]) if columns else shape
        wide = request.dtype == INT8 and place == 2
        if blank or wide:  # randn without data imports a quarter of torch
            drawn = torch.empty(size, device=device, dtype=torch.int32 if wide else dtype)
        elif request.dtype != INT8:
            drawn = torch.randn(size, generator=generator, device=device, dtype=dtype)
        else:
            most = min(request.max_abs or 0, 127)
            drawn = torch.randint(-most, most + 1, size, generator=generator, device=device, dtype=dtype)
        structure = request.structures[place]
        if isinstance(structure, Triangular) and place < 2 and not blank:
            (drawn.triu_ if structure.upper != columns else drawn.tril_)()
        found.append(drawn.mT if columns else drawn)
    a, b, c = found
    return a, (a.mT if request.shared else b), c


def run_kernels(plan: Plan) -> None:
    """Run a plan on tensors without data, except the vendor's products, for which torch would import sympy.

    Raises:
        PlanError: the plan cannot run: the product itself says why.
    """
    from torch.overrides import TorchFunctionMode

    executor, operands = plan.build(), drawn_operands(plan.request, 0, blank=True)

    class WithoutProducts(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            left_out = func in (torch.bmm, torch.mm) and "out" in kwargs
            return kwargs["out"] if left_out else func(*args, **kwargs)

    with WithoutProducts():
        executor.run(*operands)


def compile_now(plan: Plan) -> None:
    """Compile the missing kernels of a plan in parallel processes, and say so on stderr, if that takes a while."""
    calls = [partial(run_kernels, plan)]
    seconds = [(len(kernel.text) / CHARACTERS) ** POWER for kernel in kernels_of(calls)]
    if sum(seconds) > QUICK:
        text = f"lcma: compiling {len(seconds)} kernels of {plan.candidate}, about {max(seconds) + QUICK:.0f} s"
        print(f"{text}; stored for later processes", file=sys.stderr, flush=True)
        compile_ahead(calls)


def run_once(executor: Executor, request: Request) -> None:
    """Run an executor on operands of zeros, on a stream of its own: kernels are loaded with their first launch.

    Nothing is run if the operands take more than a quarter of the free memory: the caller's own products need it.

    Raises:
        MemoryError: the workspace does not fit into the free memory.
    """
    blank = CudaBench().operands(request, 0, blank=True)
    tensors = [one for operand in blank for one in (operand if isinstance(operand, list) else [operand])]
    with beside_captures(), torch.no_grad():
        if 4 * sum(one.untyped_storage().nbytes() for one in tensors) > torch.cuda.mem_get_info()[0]:
            return
        with torch.cuda.stream(torch.cuda.Stream()):
            try:
                a, b, out = (_allocated(operand) for operand in blank)
                executor.run(a, b, out)
            except torch.OutOfMemoryError as error:
                raise MemoryError(str(error)) from None


def _allocated(operand: Any) -> Any:
    """Return tensors with memory like ones without, strides included."""
    if isinstance(operand, list):
        return [_allocated(one) for one in operand]
    return torch.empty_strided(operand.shape, operand.stride(), dtype=operand.dtype, device="cuda").zero_()


def _relative(c: Tensor, truth: Tensor) -> float:
    return float((c - truth).norm() / (float(truth.norm()) or 1.0))
