"""Products that commands are asked about: devices, dtypes, and requests with the machine that they would run on."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import click

from ..errors import PlanError, TargetError
from ..kernels import Layout, Machine, Plan, Request, machine_for
from ..kernels.arrays import torch
from ..kernels.cpu.machine import cpu_machine, free_bytes, machine_id
from ..kernels.cpu.threads import thread_count
from ..kernels.cuda.machine import cuda_machine, require_device
from ..kernels.planning.profile import find_profile, stored_profile
from ..kernels.precision import fields_of
from ..kernels.request import PLAIN, structures_of
from ..kernels.structure import is_factored
from ..schemes_db.symmetry import ATTENTION_PRODUCTS
from .options import Choice, Meaning
from .output import data_rows

Sizes = tuple[int, int, int]

Told = tuple[str, dict[str, Any]]
"""A line for people, and what it tells as JSON."""

MAX_SIZE = 1 << 17
"""The longest side of matrices that a command makes up by itself."""

FACTORS = {row["product"]: (row["left"], row["right"]) for row in data_rows("factors")}
"""The factors of the six products of causal attention; a transposed one is stored by columns."""


@dataclass(frozen=True)
class Device:
    """The device of a product: the CPU, or a GPU by its number (None: the current one)."""

    kind: str
    index: int | None = None

    def __str__(self) -> str:
        return self.kind if self.index is None else f"{self.kind}:{self.index}"

    def current(self) -> AbstractContextManager[object]:
        """Make a GPU the current one for as long as the context lasts.

        Raises:
            PlanError: GPUs are here, but not this one.
        """
        if self.index is None:
            return nullcontext()
        try:
            import torch
        except ImportError:
            return nullcontext()
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if count <= self.index and count:
            raise PlanError(f"there is no GPU {self.index} here: torch sees {count}")
        return torch.cuda.device(self.index) if count else nullcontext()

    def require(self) -> None:
        """Check that products can run here.

        Raises:
            PlanError: there is no such GPU, or no torch or Triton.
        """
        if self.kind == "cuda":
            try:
                with self.current():
                    require_device(self.index)
            except PlanError as error:
                raise PlanError(f"{error}; without --device the CPU is used") from None


def device_of(text: str) -> Device:
    """The device that is called cpu, cuda or cuda:N."""
    match = re.fullmatch(r"(cpu)|(cuda)(?::(\d{1,3}))?", text)
    if not match:
        raise click.BadParameter(f"{text!r} is not a device; write cpu, cuda or cuda:N")
    return Device(match.group(1) or match.group(2), int(match.group(3)) if match.group(3) else None)


DEVICE = Meaning("cpu|cuda|cuda:N", device_of)

CAUSAL = Choice([name.lower() for name in ATTENTION_PRODUCTS])

DTYPE = "float32"
"""The dtype of products of matrices that a command makes up by itself, where none is given."""


def causal_name(text: str | None) -> str | None:
    """The key in ATTENTION_PRODUCTS of a --causal option."""
    return next((name for name in ATTENTION_PRODUCTS if name.lower() == text), None)


def sizes_given(arguments: Sequence[str], least: int) -> Sizes:
    """(m, k, n) of three arguments, each at least `least`; one argument is all three.

    Raises:
        UsageError: they are not three such numbers.
    """
    if len(arguments) == 1 and arguments[0].isdigit():
        arguments = (*arguments,) * 3
    if len(arguments) != 3:
        raise click.UsageError("give three sizes M K N, or one file with a factored matrix")
    size = click.IntRange(least, 1 << 24)
    try:
        m, k, n = (int(click.types.convert_type(size).convert(text, None, None)) for text in arguments)
    except click.BadParameter as error:
        raise click.UsageError(error.message) from None
    return m, k, n


def sizes_of(text: str, causal: str | None = None) -> Sizes:
    """(m, k, n) of a SIZE: N, MxKxN, or LxD for a product of causal attention.

    Raises:
        TargetError: it is none of these.
    """
    parts = text.lower().split("x")
    allowed = (1, 2, 3) if causal else (1, 3)
    if len(parts) not in allowed or not all(part.isdigit() and 1 <= int(part) <= MAX_SIZE for part in parts):
        forms = "N, LxD or MxKxN" if causal else "N or MxKxN"
        raise TargetError(f"size {text!r} must be {forms}, each from 1 to {MAX_SIZE}")
    numbers = [int(part) for part in parts]
    if len(numbers) == 2:
        length, width = numbers
        return (length, width, length) if causal in ("QK", "dP") else (length, length, width)
    m, k, n = numbers * 3 if len(numbers) == 1 else numbers
    return m, k, n


def sized_request(
    sizes: Sizes,
    dtype: str,
    device: Device,
    causal: str | None = None,
    batch: tuple[int, ...] = (),
    *,
    max_error: float | None = None,
    max_abs: int | None = None,
) -> Request:
    """The request for such a product; `dtype` names an arithmetic, `causal` is a key of ATTENTION_PRODUCTS.

    Raises:
        PlanError: the device has no such dtype, or the triangular matrix is not square.
    """
    structures, layouts = PLAIN, (Layout.ROWS, Layout.ROWS, Layout.ROWS)
    if causal is not None:
        structures = structures_of(ATTENTION_PRODUCTS[causal])
        first, second = (Layout.COLUMNS if "^T" in name else Layout.ROWS for name in FACTORS[causal])
        layouts = (first, second, Layout.ROWS)
    return Request(
        *sizes,
        batch_a=batch,
        batch_b=batch,
        device=device.kind,
        layouts=layouts,
        structures=structures,
        **fields_of(dtype),
        max_error=max_error,
        max_abs=max_abs,
    )


def machine_of(request: Request, profile: str | None = None, threads: int | None = None) -> Machine:
    """The machine that a request is planned for: this one, or that of a profile by name or file.

    Raises:
        PlanError: there is no such profile, or this machine was not measured with so many threads.
        SchemeFormatError: the file is no profile.
    """
    if request.ring is not None:
        if profile or threads not in (None, machine_for(request).threads):
            raise PlanError("exact products are planned for this machine; leave --profile and --threads out")
        return machine_for(request)
    if request.device != "cpu":
        if threads is not None:
            raise PlanError("threads are of a processor; leave --threads out with --device cuda")

        return cuda_machine(profile=find_profile(profile)) if profile else cuda_machine()

    if profile:
        return cpu_machine(profile=find_profile(profile), threads=threads)
    if threads in (None, thread_count()):
        return machine_for(request)
    if (measured := stored_profile(machine_id(threads or 1))) is None:
        mend = f"run LCMA_NUM_THREADS={threads} lcma doctor --profile"
        raise PlanError(f"this machine was not measured with {threads} threads: {mend}, or name a --profile")
    return cpu_machine(profile=measured, threads=threads)


def gflops(m: int, k: int, n: int, seconds: float) -> float:
    """Effective GFLOP/s: those of the classical product, 2 m k n / seconds."""
    return 2e-9 * m * k * n / seconds


def run_once(
    plan: Plan, run: Callable[[Any], Any], where: str, device: Device, unit: str = "GFLOP/s"
) -> tuple[Any, Told]:
    """Return what `run` makes of a plan's executor, with a line and facts; `where` follows the request in the line.

    Raises:
        PlanError: there is too little memory.
    """
    request, began = plan.request, time.perf_counter()
    with within_memory(request, plan.candidate):
        result = run(plan.build())
        if getattr(result, "is_cuda", False):
            torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    rate = request.items * gflops(*request.shape, seconds)
    line = f"{plan.candidate}: {request}{where}: {seconds:.3f} s, {rate:.1f} effective {unit}"
    facts: dict[str, Any] = {"candidate": str(plan.candidate), "product": str(request), "device": str(device)}
    facts |= {"seconds": seconds, "effective_gflops": rate}
    return result, (f"{line} (first call, compiling included)", facts)


def require_memory(request: Request) -> None:
    """Check that the matrices of a request can be generated on its device.

    Raises:
        PlanError: they are larger than what is free.
    """
    (m, k, n), item = request.shape, 1 / 8 if request.dtype == "bit" else request.itemsize
    item_c = item if request.dtype == "bit" else request.result.itemsize
    factored = request.structures[0]
    of_a = factored.parameters if is_factored(factored) else request.items_a * m * k
    needed = item * (of_a + request.items_b * k * n) + item_c * request.items * m * n
    if request.device == "cpu":
        # Numbers are drawn in float64, one matrix at a time; bits as they are.
        needed += 0 if request.dtype == "bit" else 8 * max(of_a, request.items_b * k * n, request.items * m * n)
        free = free_bytes()
    else:
        free = torch.cuda.mem_get_info()[0]
    if needed > free:
        raise PlanError(f"the matrices of {request} need {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free")


@contextmanager
def within_memory(request: Request, what: object) -> Iterator[None]:
    """Turn a lack of memory, of the processor or of a GPU, into one line.

    Raises:
        PlanError: there was too little memory.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # torch, whose error is a RuntimeError, need not be imported.
        if not isinstance(error, MemoryError) and type(error).__name__ != "OutOfMemoryError":
            raise
        raise PlanError(f"out of memory: {request} by {what}; try --strategy vendor, or smaller matrices") from None
