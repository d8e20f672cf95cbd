"""The executors on tensors: the vendor's own product, and all others, whatever is multiplied.

The latter have checks, `out`, empty products, prepared operands and repeated calls in common.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from ...errors import PlanError
from ..arrays import Tensor, torch
from ..out import check_out, shares_storage
from ..planning.strategy import PreparedOperand
from ..precision import TF32
from ..request import BITS, Request, matmul_shape
from .dtypes import vendor_precision


class TensorCore(ABC):
    """The product that a `TensorExecutor` runs. The defaults are those of a core in the dtype of the operands.

    `dtype`: torch's name of the dtype of C; None: that of the operands. `prepares`: `prepare` computes the sums of B,
    or B in the core's arithmetic, that `fits` recognises. `repeats`: operands like those of a run need no checks.
    """

    dtype: str | None = None
    prepares = repeats = False

    def __init__(self, request: Request, width: Callable[[int], int] = lambda cols: cols) -> None:
        """`width`: the stored elements of a row of so many columns."""
        (m, k, n), self.request = request.shape, request
        self.given = "int64" if request.dtype == BITS else request.dtype
        """torch's name of the dtype of A and B."""
        self.shapes = (*request.batch_a, m, width(k)), (*request.batch_b, k, width(n))
        """The shapes of A and B."""
        self.shape = *request.batch, m, width(n)
        """The shape of C."""

    def check(self, a: Tensor, b: Tensor) -> None:
        """Check that tensors match the request.

        Raises:
            PlanError: they do not.
        """
        dtype, (left, right) = getattr(torch, self.given), self.shapes
        if a.shape != left or b.shape != right or a.dtype is not dtype or b.dtype is not dtype:
            raise PlanError(f"the plan is for {self.given} tensors of the shapes {left} and {right}; plan again")
        if a.device != b.device:
            raise PlanError(f"a is on {a.device} and b on {b.device}; move one with .to")

    def missing(self, device: Any) -> str | None:
        """Return the reason why a torch device cannot run the core, or None; `instead` is run then."""
        return None

    def instead(self, a: Tensor, b: Tensor, out: Tensor | None) -> Tensor:
        """Compute C = A B by the vendor's product."""
        raise NotImplementedError  # for cores that a device may miss

    def writes(self, out: Tensor) -> bool:
        """Return whether the core writes a result with such strides."""
        return True

    def prepare(self, b: Tensor) -> PreparedOperand:
        """Return B (..., k, n) with what the core computes from it, to pass to `run` instead of B."""
        raise PlanError(f"the plan for {self.request} prepares no operand")

    def fits(self, prepared: Tensor) -> bool:
        """Return whether this may be the result of `prepare` of a B of the request, by its dtype and shape."""
        return False

    @abstractmethod
    def run(self, a: Tensor, b: Tensor | PreparedOperand, out: Tensor) -> None:
        """Compute out = a b, not empty. `out` shares no memory with the operands."""

    def repetition(self, a: Tensor, b: Tensor, out: Tensor) -> Callable[[Tensor, Tensor], Tensor | None] | None:
        """Return a function that repeats the run that has computed out = a b, see `CudaLevel`; None: there is none."""
        return None


class TensorExecutor:
    """Runs a core on the tensors of a request. Thread-safe and deterministic.

    Memory is allocated by torch's caching allocator, so that it follows streams and graphs. `workspace`: the bytes
    that a run allocates beside the result.
    """

    def __init__(self, request: Request, core: TensorCore, workspace: int) -> None:
        self.request, self.workspace, self.core = request, workspace, core
        self._shape = core.shape
        self._empty = request.is_empty
        self._repeated: Callable[[Tensor, Tensor], Tensor | None] | None = None
        self.prepares, self.prepare, self.fits = core.prepares, core.prepare, core.fits

    def run(self, a: Tensor, b: Tensor | PreparedOperand, out: Tensor | None = None) -> Tensor:
        """Compute C = A B in `out`, or in a new tensor. a is (..., m, k), b (..., k, n) or its `prepare`.

        On a device that cannot run the core the product is the vendor's, with a warning.

        Raises:
            PlanError: the tensors do not match the request, or the core refuses their entries or their memory.
        """
        core = self.core
        # Kernels read memory, where lazy conjugates and negatives have other numbers.
        a, b = a.resolve_conj().resolve_neg(), b if isinstance(b, PreparedOperand) else b.resolve_conj().resolve_neg()
        right = b.b if isinstance(b, PreparedOperand) else b
        core.check(a, right)
        if out is not None:
            check_out(out, self._shape, a.dtype if core.dtype is None else getattr(torch, core.dtype), a.device)
        if missing := core.missing(a.device):
            warnings.warn(f"{missing}: the product is the vendor's", stacklevel=2)
            return core.instead(a, right, out)
        # The operands may be read again after C was written.
        lazy = out is not None and (out.is_conj() or out.is_neg())
        fresh = out is None or lazy or not core.writes(out) or shares_storage(out, a) or shares_storage(out, right)
        result: Any = self._allocated(a) if fresh else out
        if self._empty:
            result.zero_()
        else:
            core.run(a, b, result)
        return result if out is None or out is result else out.copy_(result)

    def again(self, a: Tensor, b: Tensor) -> Tensor:
        """Compute C = A B as `run` does, of tensors with the shapes and dtypes of a run, without its checks."""
        if (repeated := self._repeated) is not None:
            try:  # a context manager takes as long as a launch
                if (found := repeated(a, b)) is not None:
                    return found
            except torch.OutOfMemoryError:
                pass  # a run may need less
        if self._empty or not self.core.repeats:
            return self.run(a, b)
        result = self._allocated(a)
        self.core.run(a, b, result)
        self._repeated = self.core.repetition(a, b, result)
        return result

    def _allocated(self, like: Tensor) -> Tensor:
        if self.core.dtype is None:
            return like.new_empty(self._shape)
        return like.new_empty(self._shape, dtype=getattr(torch, self.core.dtype))


class VendorExecutor:
    """torch.matmul, which calls cuBLAS; with `strict` float32 is never rounded to tf32."""

    workspace = 0

    def __init__(self, strict: bool = False) -> None:
        self._strict = strict

    @classmethod
    def of(cls, request: Request) -> VendorExecutor:
        """Return the executor of a request; without a product of its precision the vendor multiplies strictly."""
        return cls(strict=request.dtype == "float32" and request.precision not in (None, TF32))

    def run(self, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        """Compute C = A B in `out`, or in a new tensor.

        Raises:
            PlanError: `out` is refused by `check_out`.
        """
        if out is not None:
            check_out(out, matmul_shape(tuple(a.shape), tuple(b.shape)), a.dtype, a.device)
            # torch.matmul overwrites operands before it has read them, and refuses strides of batches that do not fold.
            strided = out.dim() > 2 and not out.is_contiguous()
            if strided or shares_storage(out, a) or shares_storage(out, b):
                return out.copy_(self.run(a, b))

        if not self._strict:
            return torch.matmul(a, b, out=out)
        with vendor_precision("float32"):
            return torch.matmul(a, b, out=out)

    def again(self, a: Tensor, b: Tensor) -> Tensor:
        """Compute C = A B in a new tensor, where torch's current setting of tf32 is that of the request."""
        return torch.matmul(a, b)
