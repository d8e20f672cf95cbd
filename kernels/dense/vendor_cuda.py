"""Strategy "gpu-gemm": the vendor's own product, what every other is measured against."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...schemes_db.program import Program
from ..cpu.workspace import Pool
from ..cuda.cost_model import Rates
from ..cuda.dtypes import itemsize
from ..cuda.shape import Shape
from ..planning.profile import Profile
from ..planning.strategy import Stage
from ..request import OperandKind, Request

Tensor = Any

NAME = "gpu-gemm"


class VendorExecutor:
    """torch.matmul, which is cuBLAS's product."""

    workspace = 0

    def run(self, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        """C = A B in `out`, or in a new tensor."""
        import torch

        return torch.matmul(a, b, out=out)


class VendorStrategy:
    """Runs the program of one product, the classical 1x1x1, and nothing else."""

    name = NAME
    version = 1

    def can_run(self, program: Program, request: Request, profile: Profile) -> str | None:
        """See `Strategy.can_run`."""
        if program.target.shape != (1, 1, 1) or not program.target.is_general or program.rank != 1:
            return "the vendor's product has no levels"
        if request.device != "cuda":
            return f"runs on cuda, not on {request.device}"
        if any(kind is not OperandKind.DENSE for kind in request.operands):
            return f"operands must be dense, not {' and '.join(request.operands)}"
        return None

    def predict(self, program: Program, request: Request, profile: Profile) -> list[Stage]:
        """See `Strategy.predict`."""
        shape = Shape.of(request)
        if shape.empty:
            return []
        m, k, n = request.shape
        moved = shape.items * (m * k + k * n + m * n) * itemsize(request.dtype)
        seconds = Rates(profile, request.dtype).seconds(request.shape)
        whole = Stage(f"{shape.items} products {m}x{k}x{n}", request.flops, moved, product=request.shape)
        return [whole if seconds is None else replace(whole, seconds=shape.items * seconds)]

    def workspace(self, program: Program, request: Request) -> int:
        """See `Strategy.workspace`."""
        return 0

    def build(self, program: Program, request: Request, pool: Pool | None = None) -> Any:
        """See `Strategy.build`."""
        return VendorExecutor()
