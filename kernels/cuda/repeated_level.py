"""A level that multiplies operands such as those of an earlier run, by the launches of that run."""

from __future__ import annotations

from ..lazy_torch import Tensor
from .launch import ALIGNMENT
from .level import CudaLevel
from .naive import takes_triton


class RepeatedLevel:
    """C = A B of single matrices, with the shapes, strides, dtype and device of a run whose kernels are compiled.

    A run makes views, keys and pieces for its launches, which takes more of the host's time than the launches do.
    """

    def __init__(self, level: CudaLevel, a: Tensor, b: Tensor, out: Tensor) -> None:
        self._multiply = level.multiply_batch
        lefts, rights, rank = level.slabs
        (m, k), n = a.shape, b.shape[1]
        bm, bk, bn = level.blocks(m, k, n, a.element_size())
        self._out, self._products = (m, n), (rank, bm, bn)
        self._lefts, self._rights = (lefts, bm, bk), (rights, bk, bn)
        self._strides = a.stride(), b.stride()
        stacks = a.new_empty((1, *self._lefts)), a.new_empty((1, *self._rights)), a.new_empty((1, *self._products))
        self._left, self._right, self._merge = (
            one.launch(matrix.unsqueeze(0), stack)
            for one, matrix, stack in zip((level.left, level.right, level.merge), (a, b, out), stacks, strict=True)
        )

    @staticmethod
    def of(level: CudaLevel, a: Tensor, b: Tensor, out: Tensor) -> RepeatedLevel | None:
        """Return the repetition of a run that has computed out (m, n) = a (m, k) b (k, n); None if it has no launches.

        Half products and operands at odd addresses are left to runs.
        """
        if level.has_halves or not takes_triton(a) or not _aligned(a, b):
            return None
        return RepeatedLevel(level, a, b, out)

    def fits(self, a: Tensor, b: Tensor) -> bool:
        """Return whether operands of the run's shapes have its strides, and addresses for which it is compiled."""
        return (a.stride(), b.stride()) == self._strides and _aligned(a, b)

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        """Return C (m, n), a new tensor. All memory is allocated before the first launch.

        Raises:
            torch.OutOfMemoryError: the device has too little memory for the stacks.
        """
        out, products = a.new_empty(self._out), a.new_empty(self._products)
        lefts, rights = a.new_empty(self._lefts), a.new_empty(self._rights)
        self._left(a, lefts)
        self._right(b, rights)
        self._multiply(lefts, rights, products)
        self._merge(out, products)
        return out


def _aligned(a: Tensor, b: Tensor) -> bool:
    return not (a.data_ptr() | b.data_ptr()) % ALIGNMENT
