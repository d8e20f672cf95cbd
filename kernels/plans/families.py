"""The strategies of the devices, including registered ones, and the machine of a request."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ...errors import PlanError
from ..planning.machine import Machine
from ..planning.planner import Strategies
from ..planning.strategy import Strategy, registered
from ..request import Request

DEVICES = ("cpu", "cuda")


def strategies(device: str, family: str | None = None) -> Strategies:
    """Return the strategies of a device by family and name; a registered one replaces its namesake.

    Of one `family` alone its modules are imported alone: the first call of a process pays for them.
    """
    own, more = _own(device, family), registered(device)
    return {**own, **more} if more else own


@lru_cache(maxsize=16)
def _own(device: str, family: str | None) -> dict[tuple[str, str], Strategy]:
    makers = _MAKERS.get(device, {})
    every = (one for name, make in makers.items() if family in (None, name) for one in make())
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


def _cpu_dense() -> tuple[Strategy, ...]:
    from ..dense.cpu import CpuScheme, CpuVendor

    return CpuVendor(), CpuScheme()


def _cpu_causal() -> tuple[Strategy, ...]:
    from ..causal.cpu import CpuTriangular

    return CpuTriangular("strips", baseline=True), CpuTriangular("vendor"), CpuTriangular("scheme")


def _cpu_masked() -> tuple[Strategy, ...]:
    from ..causal.masks import CpuMaskedRuns

    return (CpuMaskedRuns(),)


def _cpu_structured() -> tuple[Strategy, ...]:
    from ..structured.cpu import CpuStructured

    others = (CpuStructured(name) for name in ("slabs", "widened", "dense"))
    return CpuStructured("strided", baseline=True), *others


def _cpu_exact() -> tuple[Strategy, ...]:
    from ..exact.cpu import CpuExact

    return CpuExact("leaf", baseline=True), CpuExact("scheme")


def _cuda_dense() -> tuple[Strategy, ...]:
    from ..dense.cuda import CudaScheme, CudaVendor
    from ..dense.fp8 import CudaFp8
    from ..dense.int8 import CudaInt8
    from ..dense.padded import CudaPadded
    from ..dense.scaled_half import CudaScaledHalf
    from ..dense.split import CudaSplit

    return CudaVendor(), CudaPadded(), CudaScaledHalf(), CudaSplit(), CudaFp8(), CudaInt8(), CudaScheme()


def _cuda_causal() -> tuple[Strategy, ...]:
    from ..causal.cuda import CudaTriangular

    return CudaTriangular("strips", baseline=True), *(CudaTriangular(name) for name in ("vendor", "kernel", "scheme"))


def _cuda_structured() -> tuple[Strategy, ...]:
    from ..structured.cuda import CudaStructured

    names = ("tiled", "gather", "fused", "transposed", "widened", "split", "dense")
    others = (CudaStructured(name) for name in names)
    return CudaStructured("strided", baseline=True), *others, CudaStructured("decode", version=3)


def _cuda_exact() -> tuple[Strategy, ...]:
    from ..exact.cuda import CudaExact

    return CudaExact("leaf", baseline=True), *(CudaExact(name) for name in ("kernel", "digits", "scheme"))


_MAKERS: dict[str, dict[str, Callable[[], tuple[Strategy, ...]]]] = {
    "cpu": {
        "dense": _cpu_dense,
        "causal": _cpu_causal,
        "masked": _cpu_masked,
        "structured": _cpu_structured,
        "exact": _cpu_exact,
    },
    "cuda": {"dense": _cuda_dense, "causal": _cuda_causal, "structured": _cuda_structured, "exact": _cuda_exact},
}
"""By device and family, as `Request.family` names it."""
