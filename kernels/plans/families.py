"""The strategies of the devices, including registered ones, and the machine of a request."""

from __future__ import annotations

from functools import lru_cache

from ...errors import PlanError
from ..planning.machine import Machine
from ..planning.planner import Strategies
from ..planning.strategy import Strategy, registered
from ..request import Request

DEVICES = ("cpu", "cuda")


def strategies(device: str) -> Strategies:
    """Return the strategies of a device by family and name; a registered one replaces its namesake."""
    own, more = _own(device), registered(device)
    return {**own, **more} if more else own


@lru_cache(maxsize=2)
def _own(device: str) -> dict[tuple[str, str], Strategy]:
    every = _cpu() if device == "cpu" else _cuda() if device == "cuda" else ()
    return {(strategy.family, strategy.name): strategy for strategy in every}


def check_device_of(strategy: str | None, device: str) -> None:
    """Check that a strategy, as "scheme" or "scheme:tasks", is not one of other devices only.

    Names that no device has are left to the planner, which lists those it knows.

    Raises:
        PlanError: this device has no such strategy, and another one has.
    """
    name = (strategy or "").partition(":")[0]
    if not name or name in (known := _names(device)):
        return
    for other in DEVICES:
        if name in _names(other):
            names = ", ".join(sorted(known))
            raise PlanError(f"strategy {name!r} is one of device {other}, not of {device}; choose one of {names}")


def _names(device: str) -> set[str]:
    return {strategy.name for strategy in strategies(device).values()}


def machine_for(request: Request, measure: bool = True) -> Machine:
    """Return the machine that a request runs on: the CPU, or the current GPU (an H200 if there is none).

    `measure` permits to measure missing rates of exact products over GF(2), for about a second.
    """
    if request.ring is not None:
        from ..exact.rates import exact_machine

        return exact_machine(request, measure)
    if request.device == "cpu":
        from ..cpu.machine import cpu_machine

        return cpu_machine(request.dtype)
    from ..cuda.machine import cuda_machine

    return cuda_machine()


def _cpu() -> tuple[Strategy, ...]:
    from ..causal.cpu import CpuTriangular
    from ..causal.masks import CpuMaskedRuns
    from ..dense.cpu import CpuScheme, CpuVendor
    from ..exact.cpu import CpuExact
    from ..structured.cpu import CpuStructured

    triangular = CpuTriangular("strips", baseline=True), CpuTriangular("vendor"), CpuTriangular("scheme")
    structured = tuple(CpuStructured(name) for name in ("slabs", "widened", "dense"))
    structured = (CpuStructured("strided", baseline=True), *structured)
    exact = (CpuExact("leaf", baseline=True), CpuExact("scheme"))
    return CpuVendor(), CpuScheme(), *triangular, CpuMaskedRuns(), *structured, *exact


def _cuda() -> tuple[Strategy, ...]:
    from ..causal.cuda import CudaTriangular
    from ..dense.cuda import CudaScheme, CudaVendor
    from ..dense.fp8 import CudaFp8
    from ..dense.int8 import CudaInt8
    from ..dense.padded import CudaPadded
    from ..dense.scaled_half import CudaScaledHalf
    from ..dense.split import CudaSplit
    from ..exact.cuda import CudaExact
    from ..structured.cuda import CudaStructured

    names = ("vendor", "kernel", "scheme")
    triangular = (CudaTriangular("strips", baseline=True), *(CudaTriangular(name) for name in names))
    products = ("tiled", "gather", "fused", "transposed", "widened", "split", "dense")
    structured: tuple[Strategy, ...] = tuple(CudaStructured(name) for name in products)
    structured = CudaStructured("strided", baseline=True), *structured, CudaStructured("decode", version=3)
    exact = (CudaExact("leaf", baseline=True), *(CudaExact(name) for name in ("kernel", "digits", "scheme")))
    eight_bits = CudaFp8(), CudaInt8()
    dense: tuple[Strategy, ...] = CudaVendor(), CudaPadded(), CudaScaledHalf(), CudaSplit(), *eight_bits, CudaScheme()
    return *dense, *triangular, *structured, *exact
