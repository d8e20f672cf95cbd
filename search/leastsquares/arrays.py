"""Arrays of a device: numpy on a processor, torch on a GPU, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError

FloatArray = npt.NDArray[np.float64]


class Arrays:
    """The array library of a device; functions of both libraries with the same name and arguments are in `xp`.

    Raises:
        PlanError: the device is neither cpu nor cuda, or torch or the GPU is missing.
    """

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.on_gpu = device != "cpu"
        if not self.on_gpu:
            self.xp: Any = np
            return
        if device.partition(":")[0] != "cuda":
            raise PlanError(f"least squares run on cpu or cuda, not on {device}")
        try:
            import torch
        except ImportError:
            raise PlanError(
                "least squares on a GPU need torch: pip install 'lcma[torch]', or leave --device out"
            ) from None
        if not torch.cuda.is_available():
            raise PlanError("torch finds no GPU here: leave --device out")
        self.xp = torch

    def put(self, array: npt.NDArray[Any]) -> Any:
        """Return a copy of a numpy array on the device."""
        return self.xp.asarray(array, device=self.device) if self.on_gpu else array.copy()

    def get(self, array: Any) -> npt.NDArray[Any]:
        """Return a device array as a numpy array."""
        host: npt.NDArray[Any] = array.cpu().numpy() if self.on_gpu else array
        return host

    def solve(self, matrices: Any, right: Any) -> tuple[Any, Any]:
        """Solve symmetric positive definite systems.

        Args:
            matrices: (B, N, N), overwritten on a GPU.
            right: (B, N).

        Returns:
            The solutions (B, N), and (B,) booleans, False where a matrix is singular and the solution is of no use.
        """
        if self.on_gpu:
            from .cholesky import Cholesky

            factor = Cholesky(matrices)
            return factor.solve(right), factor.positive
        solutions, solved = np.zeros_like(right), np.zeros(len(right), dtype=bool)
        for i, (matrix, vector) in enumerate(zip(matrices, right, strict=True)):
            try:
                solutions[i], solved[i] = np.linalg.solve(matrix, vector), True
            except np.linalg.LinAlgError:
                continue
        return solutions, solved
