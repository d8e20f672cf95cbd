"""The vendor's product of operands with rows padded to whole memory segments."""

from __future__ import annotations

from functools import lru_cache

from ...schemes_db.algebra import naive
from ...schemes_db.target import parse_target
from ..arrays import Tensor, torch
from ..codegen.programs import program_for
from .level import CudaLevel
from .naive import combine
from .shape import SEGMENT


class PaddedProduct(CudaLevel):
    """C = A B by one vendor product, with k and n rounded up to whole segments: the level of a single block.

    The vendor's tensor core kernels need such sizes: for others it uses kernels that are two to six times as
    slow. Only the necessary copies are made: A is used in place if k is whole, C if n is, B if both are.
    """

    target, slabs = parse_target("1x1x1"), (1, 1, 1)

    def __init__(self) -> None:
        super().__init__(program_for(naive(self.target)))

    @staticmethod
    def padded(k: int, n: int, itemsize: int) -> tuple[int, int]:
        """Round k and n up to whole segments."""
        unit = SEGMENT // itemsize
        return -(-k // unit) * unit, -(-n // unit) * unit

    def _blocks_of(self, m: int, k: int, n: int, itemsize: int) -> tuple[int, int, int]:
        return m, *self.padded(k, n, itemsize)

    def _piece(self, a: Tensor, right: Tensor, out: Tensor, prepared: bool) -> None:
        items, m, n = out.shape
        _, bk, bn = self.blocks(m, a.shape[2], n, a.element_size())
        left = a.unsqueeze(1)
        if a.shape[2] != bk:
            left = a.new_empty((a.shape[0], 1, m, bk))
            combine(self.left, a, left)
        right = right if prepared else self._rights(right, bk, bn)
        product = out.unsqueeze(1) if n == bn else out.new_empty((items, 1, m, bn))
        _multiply(left[:, 0], right[:, 0], product[:, 0])
        if n != bn:
            combine(self.merge, out, product)

    def _rights(self, b: Tensor, bk: int, bn: int) -> Tensor:
        return b.unsqueeze(1) if tuple(b.shape[1:]) == (bk, bn) else super()._rights(b, bk, bn)


def _multiply(left: Tensor, right: Tensor, product: Tensor) -> None:
    """Compute product = left right for equally many matrices, or one operand shared by all."""
    if left.shape[0] == right.shape[0] > 1:
        torch.bmm(left, right, out=product)
        return
    for i in range(product.shape[0]):
        torch.mm(left[i % left.shape[0]], right[i % right.shape[0]], out=product[i])


@lru_cache(maxsize=1)
def padded_product() -> PaddedProduct:
    """Return the core, cached with its kernels."""
    return PaddedProduct()
