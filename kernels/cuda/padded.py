"""The vendor's product of operands with rows padded to whole memory segments."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...schemes_db.algebra import naive
from ...schemes_db.target import parse_target
from ..codegen.programs import program_for
from ..prepared_operand import PreparedOperand
from .level import cuda_level
from .naive import combine
from .shape import SEGMENT, Shape

Tensor = Any


class PaddedProduct:
    """C = A B by one vendor product, with k and n rounded up to whole segments; a core of `TensorExecutor`.

    The vendor's tensor core kernels need such sizes: for others it uses kernels that are two to six times as
    slow. Only the necessary copies are made: A is used in place if k is whole, C if n is, B if both are. The copies
    are those of the level of one block, whose sums read zeros past the edges.
    """

    target, slabs = parse_target("1x1x1"), (1, 1, 1)

    def __init__(self) -> None:
        self._level = cuda_level(program_for(naive(self.target)))

    @staticmethod
    def padded(k: int, n: int, itemsize: int) -> tuple[int, int]:
        """Round k and n up to whole segments."""
        unit = SEGMENT // itemsize
        return -(-k // unit) * unit, -(-n // unit) * unit

    def prepare(self, b: Tensor) -> PreparedOperand:
        """Return matrices B (rights, k, n), padded."""
        _, k, n = b.shape
        stack = self._copied(self._level.right, b, *self.padded(k, n, b.element_size()))
        return PreparedOperand(b, stack, stack.nbytes)

    def prepared_shape(self, k: int, n: int, itemsize: int) -> tuple[int, int, int, int]:
        """Return the shape of the padded B of one k x n operand."""
        return 1, 1, *self.padded(k, n, itemsize)

    def run(self, a: Tensor, b: Tensor | PreparedOperand, out: Tensor, pieces: int = 1) -> None:
        """Compute out = a b for a (lefts, m, k), b (rights, k, n) or its `prepare`, out (items, m, n).

        `lefts` and `rights` are `items` or 1. `out` overlaps neither operand.
        """
        items, m, n = out.shape
        k = a.shape[2]
        wide = self.padded(k, n, a.element_size())
        if isinstance(b, PreparedOperand):
            right = b.sums
        else:
            right = b.unsqueeze(1) if (k, n) == wide else self._copied(self._level.right, b, *wide)
        shape = Shape(m, k, n, str(a.dtype).removeprefix("torch."), items, a.shape[0], right.shape[0])
        for piece in shape.pieces(self.target, pieces):
            left, some, result = (
                x if x.shape[0] == 1 else x[piece.items] for x in (a[:, piece.rows], right, out[:, piece.rows])
            )
            self._piece(left, some, result, *wide)

    def _piece(self, a: Tensor, right: Tensor, out: Tensor, bk: int, bn: int) -> None:
        items, m, n = out.shape
        left = a.unsqueeze(1) if a.shape[2] == bk else self._copied(self._level.left, a, m, bk)
        product = out.unsqueeze(1) if n == bn else out.new_empty((items, 1, m, bn))
        _multiply(left[:, 0], right[:, 0], product[:, 0])
        if n != bn:
            combine(self._level.merge, out, product)

    @staticmethod
    def _copied(linear: Any, matrix: Tensor, height: int, width: int) -> Tensor:
        stack = matrix.new_empty((matrix.shape[0], 1, height, width))
        combine(linear, matrix, stack)
        return stack


def _multiply(left: Tensor, right: Tensor, product: Tensor) -> None:
    """Compute product = left right for equally many matrices, or one operand shared by all."""
    import torch

    if left.shape[0] == right.shape[0] > 1:
        torch.bmm(left, right, out=product)
        return
    for i in range(product.shape[0]):
        torch.mm(left[i % left.shape[0]], right[i % right.shape[0]], out=product[i])


@lru_cache(maxsize=1)
def padded_product() -> PaddedProduct:
    """Return the core, cached with its kernels."""
    return PaddedProduct()
