"""Arrays of a device: numpy on a processor, torch on a GPU, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError

FloatArray = npt.NDArray[np.float64]

BLOCK = 64
"""Largest order that torch factors; beyond it blocks are updated by batched products."""

HALVED = 256
"""Order from which an update of a symmetric block computes its lower half in two parts."""


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
            factor = Cholesky(matrices)
            return factor.solve(right), factor.positive
        solutions, solved = np.zeros_like(right), np.zeros(len(right), dtype=bool)
        for i, (matrix, vector) in enumerate(zip(matrices, right, strict=True)):
            try:
                solutions[i], solved[i] = np.linalg.solve(matrix, vector), True
            except np.linalg.LinAlgError:
                continue
        return solutions, solved


class Cholesky:
    """The lower factors L of a batch of large matrices on a GPU, in place, and the inverses of their diagonal blocks.

    Torch's own factorisation takes them one at a time.

    Args:
        matrices: (B, N, N) torch tensor; its lower triangle is read, and overwritten by the factor.

    Attributes:
        positive: (B,) booleans, False for matrices that are not positive definite.
    """

    def __init__(self, matrices: Any) -> None:
        import torch

        self._torch, self._matrices = torch, matrices
        self._inverses: dict[int, tuple[int, Any]] = {}
        self.positive = torch.ones(len(matrices), dtype=torch.bool, device=matrices.device)
        self._factor(0, matrices.shape[1])

    def _middle(self, first: int, last: int) -> int:
        return first + max(BLOCK, ((last - first) // 2 + BLOCK - 1) // BLOCK * BLOCK)

    def _factor(self, first: int, last: int) -> None:
        """Factor the diagonal block of rows `first` to `last`."""
        a, torch, order = self._matrices, self._torch, last - first
        if order <= BLOCK:
            factor, info = torch.linalg.cholesky_ex(a[:, first:last, first:last])
            one = torch.eye(order, dtype=a.dtype, device=a.device).expand(len(a), order, order)
            self._inverses[first] = (last, torch.linalg.solve_triangular(factor, one, upper=False))
            self.positive &= info == 0
            a[:, first:last, first:last] = factor
            return
        middle = self._middle(first, last)
        self._factor(first, middle)
        self._eliminate(first, middle, middle, last)
        panel, rest = a[:, middle:last, first:middle], last - middle
        half = rest // 2 if rest > HALVED else rest
        for top, left, rows in ((0, half, half), (half, rest, rest - half)):
            if rows:
                block = a[:, middle + top : middle + top + rows, middle : middle + left]
                block.baddbmm_(panel[:, top : top + rows], panel[:, :left].swapaxes(1, 2), alpha=-1)
        self._factor(middle, last)

    def _eliminate(self, first: int, last: int, top: int, bottom: int) -> None:
        """Multiply rows `top` to `bottom` of columns `first` to `last` by L^-T of their diagonal block."""
        a = self._matrices
        if last - first <= BLOCK:
            a[:, top:bottom, first:last] = a[:, top:bottom, first:last] @ self._inverses[first][1].swapaxes(1, 2)
            return
        middle = self._middle(first, last)
        self._eliminate(first, middle, top, bottom)
        done, block = a[:, top:bottom, first:middle], a[:, middle:last, first:middle]
        a[:, top:bottom, middle:last].baddbmm_(done, block.swapaxes(1, 2), alpha=-1)
        self._eliminate(middle, last, top, bottom)

    def solve(self, right: Any) -> Any:
        """Return the solutions (B, N) of L L^T y = right."""
        a, y = self._matrices, right[:, :, None].clone()
        for first in sorted(self._inverses):
            last, inverse = self._inverses[first]
            y[:, first:last] = inverse @ y[:, first:last]
            y[:, last:] -= a[:, last:, first:last] @ y[:, first:last]
        for first in sorted(self._inverses, reverse=True):
            last, inverse = self._inverses[first]
            y[:, first:last] -= a[:, last:, first:last].swapaxes(1, 2) @ y[:, last:]
            y[:, first:last] = inverse.swapaxes(1, 2) @ y[:, first:last]
        return y[:, :, 0]
