"""Strategies for triangular products on the CPU: strips, and levels of a triangular scheme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ...schemes_db.symmetry import triangle_of
from ..cpu.executor import Core
from ..cpu.level import core_of
from ..cpu.partition import CpuMethod
from ..cpu.strategy import CpuStrategy, basic_reason
from ..cpu.strips import strip_count
from ..cpu.triangular_products import HalfProduct
from ..planning.machine import Machine
from ..planning.strategy import Candidate
from ..request import Request
from .candidates import TriangularStrategy, stable_scheme_names

GROUPED = "grouped"
"""The method of a triangular scheme's level: products with proportional coefficients in C form one longer product;
the groups are executed as tasks of one thread each.
"""


@dataclass(frozen=True)
class CpuTriangular(TriangularStrategy, CpuStrategy):
    """A strategy for triangular products on the CPU.

    - vendor: the whole product by the library, masked afterwards.
    - strips: row strips of one GEMM each: the baseline.
    - scheme: a level of a triangular scheme, its grouped products distributed to the threads.
    """

    methods = (GROUPED,)
    device: str = "cpu"

    def schemes(self, request: Request, machine: Machine) -> Sequence[str]:
        known: Sequence[str] = stable_scheme_names() if machine.triangular is None else machine.triangular
        return known

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        program = candidate.program
        if program is not None and triangle_of(program.target) != request.triangle:
            return f"{program.target} is not the triangular product that is asked for"
        return basic_reason(program, request)

    def mode(self, candidate: Candidate) -> str:
        return "tasks" if self.name == "scheme" else "whole"

    def core(self, candidate: Candidate, request: Request, machine: Machine) -> Core:
        return _core(candidate, replace(request, max_error=None, max_workspace=None))


@lru_cache(maxsize=64)
def _core(candidate: Candidate, request: Request) -> Core:
    """Return the core, which predicting, sizing and building share."""
    triangle, sizes, dtype = request.its_triangle, request.shape, request.dtype
    if candidate.strategy in ("vendor", "strips"):
        size = request.n if triangle.side == "right" else request.m
        return HalfProduct(triangle, sizes, dtype, 1 if candidate.strategy == "vendor" else strip_count(size))
    return core_of(candidate.own_program, request, CpuMethod(grouped=True))


STRATEGIES = CpuTriangular("strips", baseline=True), CpuTriangular("vendor"), CpuTriangular("scheme")
