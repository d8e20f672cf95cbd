"""The GEMM libraries, behind one interface."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import PlanError
from ..arrays import Matrix, Memory, torch

if TYPE_CHECKING:
    from ..planning.profile import Profile
    from ..request import Request


@dataclass(frozen=True)
class Numpy:
    """numpy: OpenBLAS in its wheels; for integers numpy's own loops, exact modulo 2 to the number of bits."""

    name: str = "numpy"
    loaded: bool = True
    """Whether the library is already imported."""

    def supports(self, dtype: str) -> bool:
        """Return whether the library multiplies matrices of this dtype."""
        return dtype != "bfloat16"

    def multiply(self, a: Matrix, b: Matrix, out: Matrix, dtype: str) -> None:
        """Compute out = a b of stored matrices (see `dtypes`) whose rows or columns are contiguous."""
        np.matmul(a, b, out=out)


@dataclass(frozen=True)
class Torch:
    """torch, with the methods of `Numpy`: MKL for float32 and wider, oneDNN for bfloat16."""

    name: str = "torch"

    @property
    def loaded(self) -> bool:
        return "torch" in sys.modules

    def supports(self, dtype: str) -> bool:
        return dtype in ("float32", "float64", "complex64", "complex128", "bfloat16")

    def multiply(self, a: Matrix, b: Matrix, out: Matrix, dtype: str) -> None:
        left, right, result = (as_tensor(matrix, dtype) for matrix in (a, b, out))
        torch.mm(left, right, out=result)


Backend = Numpy | Torch
"""A GEMM library."""


def as_tensor(matrix: Matrix, dtype: str) -> Any:
    """Return a torch tensor that shares the memory of a stored matrix, also of a read-only one."""
    if dtype == "bfloat16":
        matrix = matrix.view(np.int16)
    if not matrix.flags.writeable:  # torch warns about read-only arrays
        matrix = np.asarray(Memory(matrix, **matrix.__array_interface__ | {"data": (matrix.ctypes.data, False)}))
    tensor = torch.from_numpy(matrix)
    return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor


NUMPY, TORCH = Numpy(), Torch()


@lru_cache(maxsize=1)
def _has_torch() -> bool:
    return "torch" in sys.modules or importlib.util.find_spec("torch") is not None


def backends() -> tuple[Backend, ...]:
    """Return the installed libraries, numpy first."""
    return (NUMPY, TORCH) if _has_torch() else (NUMPY,)


def backend_of(dtype: str, name: str = "") -> Backend:
    """Return the library of this name if it is installed and supports the dtype, else the first one that does.

    Raises:
        PlanError: no library supports the dtype.
    """
    able = [backend for backend in backends() if backend.supports(dtype)]
    if not able:
        raise PlanError(f"no installed library multiplies {dtype}; install torch")
    return next((backend for backend in able if backend.name == name), able[0])


def library_for(request: Request, profile: Profile) -> Backend:
    """Return the library that is fastest for such products of a request by the profile, else numpy."""
    return backend_of(request.dtype, profile.backend(request.dtype, *request.shape))
