"""A program on tensors, with its levels executed as one: generated combines, products by kind, a generated merge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, cast

from ...errors import PlanError
from ...schemes_db.algebra import naive
from ...schemes_db.grids import Kind
from ...schemes_db.program import Product, ProductKind, Program
from ...schemes_db.symmetry import triangle_of
from ...schemes_db.target import parse_target
from ..arrays import Tensor, torch
from ..codegen.programs import program_for
from ..codegen.triton_text import Combine, Direction
from ..planning.strategy import PreparedOperand
from . import triangular_products as triangles
from .combine import Combination, merge_of
from .flat_program import FlatProgram, flat_program, nests_of, per_program
from .launch import ALIGNMENT, Repeated
from .naive import combine, takes_triton
from .repeated_product import RepeatedProduct
from .shape import SEGMENT, batch_pieces, blocks_of
from .stack import multiply_stack


class CudaMethod(StrEnum):
    """The method of a level's full products: BATCHED, one batched call, or STACK, our own kernel."""

    BATCHED = "batched"
    STACK = "stack"


class CudaLevel:
    """A program and the method by which its products run, for tensors of any floating dtype.

    STACK uses `multiply_stack` if supported, which is faster in half precision, else the batched call.
    Half products require BATCHED: products are ordered by kind, so that those of one kind are a range of
    the stacks. Sizes that the grid does not divide are padded with zeros in the stacks. On CPU
    tensors that Triton does not interpret the sums are computed by plain torch: the variant that tests run.
    `others`: further arguments of `Combine` for the sums of A, of B and of C.

    Raises:
        PlanError: as `FlatProgram`, or another method than BATCHED for half products.
    """

    def __init__(
        self,
        program: Program,
        method: CudaMethod = CudaMethod.BATCHED,
        others: tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]] = ({}, {}, {}),
    ) -> None:
        self.method = method
        self.flat: FlatProgram = flat_program(program)
        self.target = target = self.flat.program.target
        self._kinds = [op.kind for op in self.flat.products]
        self.has_halves = any(kind.half for kind in self._kinds)
        if self.has_halves and method is not CudaMethod.BATCHED:
            raise PlanError(f"half products are run in batches, not by {method}")
        self._summed = all(kind is Kind.FULL for row in target.c for kind in row)
        nests, (*operands, result) = nests_of(program), self.flat.sides
        self.left, self.right = (
            Combination(
                Combine(linear, Direction.TO_STACK, blocks, tuple(kinds[i][j] for i, j in blocks), nest=nest, **own)
            )
            for kinds, (linear, blocks), nest, own in zip((target.a, target.b), operands, nests, others, strict=False)
        )
        needed = tuple(map(_needed, self.flat.products)) if self.has_halves else ()
        self.merge = merge_of(*result, target.c, slabs=needed, nest=nests[2], **others[2])
        self.rank = self.flat.rank
        self.blocks = lru_cache(maxsize=64)(self._blocks_of)

    def _blocks_of(self, m: int, k: int, n: int, itemsize: int) -> tuple[int, int, int]:
        """Return the sizes of a block of A, B and C, padding included."""
        return blocks_of((m, k, n), itemsize, self.target)

    @property
    def kinds(self) -> dict[ProductKind, int]:
        """The number of products of each kind."""
        return {kind: self._kinds.count(kind) for kind in dict.fromkeys(self._kinds)}

    def fits(self, m: int, k: int, n: int) -> bool:
        """Return whether products of these sizes can be run: for a mask with half blocks the grid must divide them."""
        divided = not any(size % parts for size, parts in zip((m, k, n), self.target.shape, strict=True))
        return divided or not self.has_halves or triangle_of(self.target) is not None

    def prepare(self, b: Tensor) -> PreparedOperand:
        """Return matrices B (rights, k, n) with their sums B~ (rights, rank, height, width)."""
        _, k, n = b.shape
        _, bk, bn = self.blocks(1, k, n, b.element_size())
        stack = self._sums(self.right, b, bk, bn)
        return PreparedOperand(b, stack, stack.nbytes)

    def prepared_shape(self, k: int, n: int, itemsize: int) -> tuple[int, int, int, int]:
        """Return the shape of B~ of one k x n operand."""
        _, bk, bn = self.blocks(1, k, n, itemsize)
        return 1, self.rank, bk, bn

    def run(self, a: Tensor, b: Tensor | PreparedOperand, out: Tensor, pieces: int = 1) -> None:
        """Compute out = a b for a (lefts, m, k), b (rights, k, n) or its `prepare`, out (items, m, n).

        `lefts` and `rights` are `items` or 1. `out` overlaps neither operand; unwanted blocks are set to zero.

        Raises:
            PlanError: the sizes are not valid for half products: see `fits`.
        """
        items, m, n = out.shape
        if not self.fits(m, a.shape[2], n):
            raise PlanError(f"{m} x {a.shape[2]} x {n} is not a multiple of the grid of {self.target}")
        prepared = isinstance(b, PreparedOperand)
        right = b.sums if isinstance(b, PreparedOperand) else b
        if right.shape[0] == 1 and not prepared:
            right, prepared = self.prepare(right).sums, True
        if pieces == 1:
            self._piece(a, right, out, prepared)
            return
        for some, rows in batch_pieces(items, m, a.element_size(), self.target, pieces):
            left, other = (x if x.shape[0] == 1 else x[some] for x in (a, right))
            self._piece(left[:, rows], other, out[some, rows], prepared)

    def repetition(self, a: Tensor, b: Tensor, out: Tensor) -> Callable[[Tensor, Tensor], Tensor | None] | None:
        """Return the function that multiplies operands such as those of a run, by the launches of that run.

        A run makes views, keys and pieces for its launches, which takes more of the host's time than the launches do.
        The run has computed out (m, n) = a (m, k) b (k, n); the function takes operands of its shapes, dtype and
        device and returns C, or None for other strides, or addresses for which nothing is compiled. None for half
        products, and where there are no launches.
        """
        if self.has_halves or not takes_triton(a) or (a.data_ptr() | b.data_ptr()) % ALIGNMENT:
            return None
        (m, k), n, strides = a.shape, b.shape[1], (a.stride(), b.stride())
        bm, bk, bn = self.blocks(m, k, n, a.element_size())
        shapes = [(self.rank, *block) for block in ((bm, bk), (bk, bn), (bm, bn))]
        launches = (
            one.launch(matrix.unsqueeze(0), matrix.new_empty((1, *shape)))
            for one, matrix, shape in zip((self.left, self.right, self.merge), (a, b, out), shapes, strict=True)
        )
        product = RepeatedProduct(cast("list[Repeated]", list(launches)), self.multiply_batch, shapes, out)

        def again(a: Tensor, b: Tensor) -> Tensor | None:
            if (a.stride(), b.stride()) != strides or (a.data_ptr() | b.data_ptr()) % ALIGNMENT:
                return None
            return product(a, b)

        return again

    def _piece(self, a: Tensor, right: Tensor, out: Tensor, prepared: bool) -> None:
        """Run one piece; `right` is B, or B~ if `prepared`."""
        items, m, n = out.shape
        bm, bk, bn = self.blocks(m, a.shape[2], n, a.element_size())
        lefts = self._sums(self.left, a, bm, bk)
        rights = right if prepared else self._sums(self.right, right, bk, bn)
        in_place = self._is_whole(out, bm, bn)
        if in_place:
            products = out.unsqueeze(1)
        elif self.has_halves:
            products = triangles.empty_products(a, items, self.rank, bm, bn)
        else:
            products = a.new_empty((items, self.rank, bm, bn))
        self._multiply(lefts, rights, products)
        if not in_place:
            combine(self.merge, out, products)

    def _is_whole(self, matrix: Tensor, height: int, width: int) -> bool:
        """Return whether matrices (items, rows, cols) are the only block of this size of a level."""
        return self.rank == 1 and not self.has_halves and tuple(matrix.shape[1:]) == (height, width)

    def _sums(self, combination: Combination, matrix: Tensor, height: int, width: int) -> Tensor:
        """Return the sums (items, rank, height, width) of the blocks of A or B, in new memory unless there is one."""
        if self._is_whole(matrix, height, width):
            return matrix.unsqueeze(1)
        if self.has_halves and combination is self.right:
            stack = triangles.empty_stacks(matrix, matrix.shape[0], self.rank, height, width)
        else:
            stack = matrix.new_empty((matrix.shape[0], self.rank, height, width))
        combine(combination, matrix, stack)
        return stack

    def _multiply(self, lefts: Tensor, rights: Tensor, products: Tensor) -> None:
        items = products.shape[0]
        if not self.has_halves and lefts.shape[0] == rights.shape[0] == items:
            self.multiply_batch(lefts.flatten(0, 1), rights.flatten(0, 1), products.flatten(0, 1))
            return
        one = self._by_kind if self.has_halves else self.multiply_batch
        for i in range(items):
            one(lefts[i % lefts.shape[0]], rights[i % rights.shape[0]], products[i])

    def multiply_batch(self, lefts: Tensor, rights: Tensor, products: Tensor) -> None:
        """Compute products (slabs, m, n) of lefts (slabs, m, k) and rights (slabs, k, n), all full ones."""
        if self.rank == 1 and len(lefts) == 1:  # the library's product of one pair may be faster than of a batch of one
            torch.mm(lefts[0], rights[0], out=products[0])
        elif self.method is CudaMethod.BATCHED or not multiply_stack(lefts, rights, products):
            torch.bmm(lefts, rights, out=products)

    def _by_kind(self, lefts: Tensor, rights: Tensor, products: Tensor) -> None:
        longest = triangles.LONGEST if lefts.element_size() == 4 and self._summed else lefts.shape[2]
        for kind in dict.fromkeys(self._kinds):
            start = self._kinds.index(kind)
            some = slice(start, start + self._kinds.count(kind))
            triangles.multiply(lefts[some], rights[some], products[some], kind, longest)


def _needed(product: Product) -> Kind:
    """Return the part of a product that its results use."""
    if product.kind.side != "out":
        return Kind.FULL
    return Kind.UPPER if product.kind.of_upper else Kind.LOWER


_levels = per_program(CudaLevel)


def cuda_level(program: Program, method: CudaMethod = CudaMethod.BATCHED) -> CudaLevel:
    """Return the level of a program, cached with its kernels; raises as `CudaLevel`."""
    return _levels(program, method)


class PaddedProduct(CudaLevel):
    """C = A B by one vendor product, with k and n rounded up to whole segments: the level of a single block.

    The vendor's tensor core kernels need such sizes: for others it uses kernels that are two to six times as
    slow. Only the necessary copies are made: A is used in place if k is whole, C if n is, B if both are.
    """

    target = parse_target("1x1x1")

    def __init__(self) -> None:
        super().__init__(program_for(naive(self.target)))

    @staticmethod
    def padded(k: int, n: int, itemsize: int) -> tuple[int, int]:
        """Round k and n up to whole segments."""
        unit = SEGMENT // itemsize
        return -(-k // unit) * unit, -(-n // unit) * unit

    def _blocks_of(self, m: int, k: int, n: int, itemsize: int) -> tuple[int, int, int]:
        return m, *self.padded(k, n, itemsize)


@lru_cache(maxsize=1)
def padded_product() -> PaddedProduct:
    """Return the core, cached with its kernels."""
    return PaddedProduct()
