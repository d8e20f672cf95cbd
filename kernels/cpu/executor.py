"""Parts shared by all CPU executors: checks, copies of operands with unsupported layouts, batches, `out`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ...errors import PlanError
from ..arrays import Matrix
from ..dtypes import stored
from ..overflow import largest_magnitude, require_within
from ..planning.strategy import PreparedOperand, Stage
from ..request import Layout, Request
from .workspace import Arena, Pool, aligned, empty_aligned, shared_pool


class Core(ABC):
    """Computes one product of matrices of known, nonzero sizes in a given arena; its cost is known."""

    def workspace(self, threads: int) -> int:
        """Return the bytes taken from the arena when run with so many threads."""
        return 0

    def compile(self) -> None:  # noqa: B027  # most cores have no code
        """Compile all code, including that of inner levels, if there is any."""

    @abstractmethod
    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1) -> None:
        """Compute out = a b on up to `threads` threads; `out` overlaps neither operand and is fully overwritten."""

    @abstractmethod
    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        """Return the cost of `times` runs, without seconds; `prepared`: the sums of B exist already."""


class PreparingCore(Core):
    """A core that can compute the sums of B separately from the product."""

    @abstractmethod
    def prepare(self, b: Matrix, threads: int) -> PreparedOperand:
        """Compute the sums of B in newly allocated memory.

        Raises:
            PlanError: this core stores no sums.
        """

    @abstractmethod
    def run(
        self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1, right: PreparedOperand | None = None
    ) -> None:
        """See `Core.run`. `right` is the result of `prepare`; if given, b is not read."""


def copy_bytes(request: Request) -> tuple[int, int, int]:
    """Return the bytes of the copies of A, B and C that their layouts require."""
    m, k, n = request.shape
    sizes = (m * k, k * n, m * n)
    items = (request.itemsize, request.itemsize, request.result.itemsize)
    return tuple(  # type: ignore[return-value]
        aligned(size * item) if layout is Layout.SCATTERED else 0
        for size, item, layout in zip(sizes, items, request.layouts, strict=True)
    )


class ArrayOperands:
    """What the callers of an executor pass: arrays of machine numbers."""

    def checked(self, request: Request, a: Any, b: Any, out: Any) -> tuple[Matrix, Matrix]:
        """Return A and B as the core reads them.

        Raises:
            PlanError: the arrays do not match the request, or an entry exceeds the stated `max_abs`.
        """
        a, b = stored(a), stored(b)
        request.check(a, b, stored(out) if isinstance(out, np.ndarray) else out)
        if request.max_abs is not None:
            require_within("a", largest_magnitude(a), request.max_abs)
            require_within("b", largest_magnitude(b), request.max_abs)
        return a, b

    def empty(self, request: Request) -> Any:
        """Return a new result."""
        return empty_aligned((*request.batch, request.m, request.n), request.result)

    def written(self, out: Any) -> Matrix:
        """Return the array of a result that the core writes."""
        return stored(out)

    def is_late(self, request: Request, a: Matrix, b: Matrix, out: Matrix) -> bool:
        """Return whether results are written to `out` at the end: a later matrix of the batch may read it."""
        return request.layouts[2] is Layout.SCATTERED and bool(request.batch)


ARRAYS = ArrayOperands()


class MatrixExecutor:
    """Runs a core on every matrix of a request. `core` is None where the request is empty. Thread-safe."""

    def __init__(
        self,
        request: Request,
        core: Core | None,
        pool: Pool | None = None,
        threads: int = 1,
        operands: ArrayOperands = ARRAYS,
    ) -> None:
        self.request = request
        self.threads = threads
        self._operands = operands
        self._core = core
        self._pool = shared_pool if pool is None else pool

    @property
    def workspace(self) -> int:
        return 0 if self._core is None else self._core.workspace(self.threads) + sum(copy_bytes(self.request))

    def prepare(self, b: Matrix) -> PreparedOperand:
        """Return one matrix B of this request with its sums, to pass to `run` instead of B; b must not be modified.

        Raises:
            PlanError: neither rows nor columns of B are contiguous, or this plan stores no sums of B.
        """
        if self.request.layouts[1] is Layout.SCATTERED or stored(b).shape != (self.request.k, self.request.n):
            raise PlanError(f"a prepared operand of {self.request} is one contiguous matrix, not {b.shape}")
        if not isinstance(self._core, PreparingCore):
            raise PlanError(f"the plan for {self.request} keeps no sums of B")
        return self._core.prepare(stored(b), self.threads)

    def run(self, a: Any, b: Any, out: Any = None) -> Any:
        """Compute C = A B in `out`, or in a new C-ordered array. See `Executor.run`; b may be a result of `prepare`.

        Raises:
            PlanError: the arrays do not match the request, or an entry exceeds the stated `max_abs`.
        """
        request, operands = self.request, self._operands
        b, right = (b.b, b) if isinstance(b, PreparedOperand) else (b, None)
        a, b = operands.checked(request, a, b, out)
        given = operands.empty(request) if out is None else out
        out = operands.written(given)
        if self._core is None:
            out[...] = 0
            return given
        late = operands.is_late(request, a, b, out)
        # It overlaps neither operand where the request has a batch.
        target = np.empty(out.shape, out.dtype) if late else out
        batch = request.batch
        a, b = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
        with self._pool.take(self.workspace) as arena:
            for index in np.ndindex(batch):
                self._one(self._core, a[index], b[index], target[index], arena.rest() if batch else arena, right)
        if late:
            out[...] = target
        return given

    def again(self, a: Matrix, b: Matrix) -> Matrix:
        """Compute C = A B as `run` does, without its checks: the matrices have the properties of those of a run."""
        request = self.request
        if self._core is None or request.batch or request.max_abs is not None:
            return self.run(a, b)
        a, b, out = stored(a), stored(b), empty_aligned((request.m, request.n), request.result)
        with self._pool.take(self.workspace) as arena:
            self._one(self._core, a, b, stored(out), arena, None)
        return out

    def _one(self, core: Core, a: Matrix, b: Matrix, out: Matrix, arena: Arena, right: PreparedOperand | None) -> None:
        layouts = self.request.layouts
        a, b = (_gathered(x, layout, arena) for x, layout in ((a, layouts[0]), (b, layouts[1])))
        given, out = out, arena.array(out.shape, out.dtype) if layouts[2] is Layout.SCATTERED else out
        if right is not None and isinstance(core, PreparingCore):
            core.run(a, b, out, arena, self.threads, right)
        else:
            core.run(a, b, out, arena, self.threads)
        if given is not out:
            given[...] = out


def _gathered(matrix: Matrix, layout: Layout, arena: Arena) -> Matrix:
    if layout is not Layout.SCATTERED:
        return matrix
    copy = arena.array(matrix.shape, matrix.dtype)
    copy[...] = matrix
    return copy
