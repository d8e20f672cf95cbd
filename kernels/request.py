"""Requests: sizes, dtype, layouts, structures and limits of one product."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from ..errors import PlanError
from ..schemes_db.display import line
from ..schemes_db.masks import refuse_masks
from ..schemes_db.symmetry import SIDES, Triangle
from .arrays import Matrix
from .dtypes import dtype_of
from .out import check_out
from .precision import FP8, NAMES, TF32, UNITS, Arithmetic, arithmetic_of
from .ring import ExactRing
from .structure import DENSE, BlockMask, Structure, Triangular, is_factored

DTYPES = ("float32", "float64", "complex64", "complex128", "int32", "int64", "bfloat16")

CUDA_DTYPES = ("float16", "bfloat16", "float32", "float64")
"""Dtypes of GPU products."""

FACTORED_DTYPES = (*CUDA_DTYPES, "complex64", "complex128")
"""Dtypes of GPU products with a factored operand."""

FACTORED_CPU_DTYPES = ("float32", "float64", "complex64", "complex128")
"""Dtypes of products with a factored operand on a processor."""

INT8 = "int8"
"""Integers of one byte, whose largest magnitude must be stated; their products are int32."""

BITS = "bit"
"""Elements of GF(2), 64 per word of uint64 along the rows."""

EXACT_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
"""Integer dtypes of exact products."""

WIDE, PYTHON = "int128", "object"
"""Results beyond int64: two words of int64, the lower first and as its bits; or Python integers."""

BOUNDED = ("int8", "int32", "int64")
"""Dtypes for which the largest magnitude of an entry may be stated."""

PLAIN: tuple[Structure, Structure, Structure] = (DENSE, DENSE, DENSE)
"""The structures of a product of plain matrices."""


_NAMES = {np.dtype(name): name for name in DTYPES if name != "bfloat16"}
"""Names by numpy dtype: `dtype.name` takes longer than the rest of a request."""


class Layout(StrEnum):
    """The index of a matrix that runs through adjacent elements; SCATTERED: neither, so a copy is needed."""

    ROWS = "rows"
    COLUMNS = "columns"
    SCATTERED = "scattered"


@dataclass(frozen=True)
class Request:
    """One product C = A B, A (*batch_a, m, k) and B (*batch_b, k, n); the batches broadcast.

    `dtype` is how A and B are stored; `precision` permits a GPU to multiply them in another arithmetic (one of
    `precision.NAMES`; None: that of the dtype). `layouts` and `structures` are those of A, B and C. `static` names the
    operand ("A" or "B") that is the same in every call. `max_workspace` is in bytes; `max_extra_bytes` bounds the bytes
    of an expanded structured operand beyond its parameters. `max_error` bounds the a-priori error of an element
    relative to k max|A| max|B|. `max_abs` is the largest magnitude of an entry of integer A and B, as stated by the
    caller: nothing may overflow then. It is required for int8; its C is int32.

    `ring` is None for products of real numbers; else the product is exact in the ring, and over GF(2)
    of the dtype "bit" (m, k and n count bits). `out_dtype` is the dtype of C if it is not implied by
    the dtype: "int64", "int128" or "object" for an exact product of integers.

    Raises:
        PlanError: the sizes, dtype or limits are invalid.
    """

    m: int
    k: int
    n: int
    dtype: str = "float32"
    batch_a: tuple[int, ...] = ()
    batch_b: tuple[int, ...] = ()
    device: str = "cpu"
    layouts: tuple[Layout, Layout, Layout] = (Layout.ROWS, Layout.ROWS, Layout.ROWS)
    static: str | None = None
    structures: tuple[Structure, Structure, Structure] = PLAIN
    max_error: float | None = None
    max_workspace: int | None = None
    max_abs: int | None = None
    max_extra_bytes: int = 0
    ring: ExactRing | None = None
    out_dtype: str | None = None
    precision: str | None = None

    def __hash__(self) -> int:
        # Kept: a plan that is looked up hashes its request several times.
        try:
            return self._hash  # type: ignore[attr-defined]
        except AttributeError:
            sizes = self.m, self.k, self.n, self.batch_a, self.batch_b
            found = hash((sizes, self.dtype, self.precision, self.device, self.structures))
            object.__setattr__(self, "_hash", found)
            return found

    def __getstate__(self) -> dict[str, Any]:
        # Without the hash: strings hash anew in every process.
        return {key: value for key, value in vars(self).items() if key != "_hash"}

    def __post_init__(self) -> None:
        if min(self.m, self.k, self.n, 0, *self.batch_a, *self.batch_b) < 0:
            raise PlanError(f"sizes must not be negative: {self.m} x {self.k} x {self.n}, batch {self.batch_a}")
        object.__setattr__(self, "_batch", _broadcast(self.batch_a, self.batch_b))
        factored = self.structures is not PLAIN and is_factored(self.structures[0])
        if factored or self.ring is not None or self.device != "cpu" or self.dtype not in DTYPES:
            self._check_dtype()
        if self.precision is not None:
            self._check_precision()
        if self.static not in (None, "A", "B"):
            raise PlanError(f'static must be "A", "B" or None, not {self.static!r}')
        if self.max_workspace is not None and self.max_workspace < 0:
            raise PlanError(f"max_workspace must be at least 0 bytes, not {self.max_workspace}")
        if self.max_extra_bytes < 0:
            raise PlanError(f"max_extra_bytes must be at least 0 bytes, not {self.max_extra_bytes}")
        if self.max_error is not None and not self.max_error > 0:
            raise PlanError(f"max_error must be positive, not {self.max_error}")
        if self.out_dtype not in (None, "int64") and (
            self.ring is None or self.ring.modulus or self.out_dtype not in (WIDE, PYTHON)
        ):
            raise PlanError(f"out_dtype {self.out_dtype} is not for this product; leave it out")
        if self.max_abs is not None:
            if self.dtype not in (EXACT_DTYPES if self.ring is not None else BOUNDED):
                raise PlanError(f"max_abs is for {', '.join(BOUNDED)}; leave it out for {self.dtype}")
            if not isinstance(self.max_abs, int | np.integer) or self.max_abs < 0:
                raise PlanError(f"max_abs must be a whole number of at least 0, not {self.max_abs!r}")
            object.__setattr__(self, "max_abs", int(self.max_abs))
        if self.structures is not PLAIN:
            sizes = ((self.m, self.k), (self.k, self.n), (self.m, self.n))
            for label, structure, size in zip(("a", "b", "the product"), self.structures, sizes, strict=True):
                if structure is not DENSE and (reason := structure.reason(*size)):
                    raise PlanError(f"{label} {reason}")

    def _check_dtype(self) -> None:
        """Check that the dtype is supported on the device, in the ring and for the structures.

        Raises:
            PlanError: it is not.
        """
        factored = is_factored(self.structures[0])
        known: tuple[str, ...] = DTYPES if self.device == "cpu" else CUDA_DTYPES
        if factored:
            known = FACTORED_CPU_DTYPES if self.device == "cpu" else FACTORED_DTYPES
        dense = self.structures == PLAIN
        if self.ring is not None:
            known = (BITS,) if self.ring.modulus == 2 else EXACT_DTYPES
        elif reason := _bytes_reason(self.dtype, self.device, self.max_abs, dense):
            raise PlanError(reason)
        if self.dtype not in known and (self.ring is not None or self.dtype != "int8"):
            mend = f"convert to one of {', '.join(known)}"
            if (precise := arithmetic_of(self.dtype)).precision is not None:
                mend = f"it is the precision {precise.precision} of {precise.dtype}"
            raise PlanError(f"dtype {self.dtype} is not supported; {mend}")

    def _check_precision(self) -> None:
        """Check that the device, the dtype and the structures have products of the precision.

        Raises:
            PlanError: they have none.
        """
        if self.device == "cpu" or self.ring is not None:
            raise PlanError(f"precision {self.precision} is of products of floats on a GPU; leave it out")
        known = [one.precision for one in NAMES if one.dtype == self.dtype]
        what = self.dtype
        if self.structures != PLAIN:
            known = [one for one in known if one == TF32 or (one != FP8 and is_factored(self.structures[0]))]
            what = f"structured matrices of {self.dtype}"
        if self.precision not in known:
            others = f"choose {' or '.join(map(str, known))}, or leave it out" if known else "leave it out"
            raise PlanError(f"precision {self.precision} is not for {what}; {others}")

    @classmethod
    def of(cls, a: Matrix, b: Matrix, out: Matrix | None = None, *, dtype: str | None = None, **others: Any) -> Request:
        """Return the request for `a @ b`, into `out` if given; `others` are further fields of it.

        `dtype` is "bfloat16" if the arrays are the bits of such numbers as uint16.

        Raises:
            PlanError: the arrays do not multiply, have different or unsupported dtypes, `out` is refused by
                `check_out`, or `max_abs` is missing or not applicable.
        """
        refuse_masks(a=a, b=b)
        if a.dtype != b.dtype:
            raise PlanError(f"a is {a.dtype} and b is {b.dtype}; convert one with .astype")
        m, k, n = product_sizes(a, b)
        batch = _broadcast(a.shape[:-2], b.shape[:-2])
        layout_c = Layout.ROWS
        if out is not None:
            wanted, result = (*batch, m, n), np.dtype(np.int32) if a.dtype == np.int8 else a.dtype
            check_out(out, wanted, result)
            layout_c = Layout.SCATTERED if _overlap(out, a) or _overlap(out, b) else layout_of(out)
        name = _NAMES.get(a.dtype) or (a.dtype.name if a.dtype.isnative else str(a.dtype))
        if dtype is not None:
            if dtype not in DTYPES or a.dtype != dtype_of(dtype).numpy:
                raise PlanError(f"arrays of {name} do not hold {dtype}")
            name = dtype
        layouts = layout_of(a), layout_of(b), layout_c
        return cls(m, k, n, name, a.shape[:-2], b.shape[:-2], layouts=layouts, **others)

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading shape of C."""
        return self._batch  # type: ignore[attr-defined]

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The shapes of A, B and C, with their batches."""
        return (*self.batch_a, self.m, self.k), (*self.batch_b, self.k, self.n), (*self.batch, self.m, self.n)

    @property
    def items(self) -> int:
        """Number of matrices of C."""
        return math.prod(self.batch)

    @property
    def items_a(self) -> int:
        """Number of distinct matrices of A."""
        return math.prod(self.batch_a)

    @property
    def items_b(self) -> int:
        """Number of distinct matrices of B."""
        return math.prod(self.batch_b)

    @property
    def is_dense(self) -> bool:
        """True if A, B and C are plain matrices of machine numbers."""
        return self.ring is None and self.structures == PLAIN

    @property
    def is_empty(self) -> bool:
        """True if a size is zero: then C is empty or all zeros."""
        return 0 in (*self.shape, *self.batch)

    @property
    def family(self) -> str:
        """The family of the strategies that it is for: "exact", "dense", "masked", "causal" or "structured"."""
        if self.ring is not None:
            return "exact"
        if self.is_dense:
            return "dense"
        if self.mask is not None:
            return "masked"
        return "causal" if self.triangle is not None else "structured"

    @property
    def triangle(self) -> Triangle | None:
        """The triangle of a triangular product: of A (side "left"), B ("right") or C ("out"); else None."""
        found = [i for i, structure in enumerate(self.structures) if structure is not DENSE]
        if len(found) != 1 or not isinstance(structure := self.structures[found[0]], Triangular):
            return None
        return Triangle(SIDES[found[0]], structure.upper, structure.shared)

    @property
    def its_triangle(self) -> Triangle:
        """The triangle of a request of the family "causal"."""
        found = self.triangle
        assert found is not None
        return found

    @property
    def shared(self) -> bool:
        """True if B is the transpose of A, and C one triangle of their product."""
        return isinstance(structure := self.structures[2], Triangular) and structure.shared

    @property
    def mask(self) -> BlockMask | None:
        """The mask of C where A and B are dense; else None."""
        a, b, c = self.structures
        return c if isinstance(c, BlockMask) and a is b is DENSE else None

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.m, self.k, self.n

    @property
    def arithmetic(self) -> str:
        """The name of dtype and precision together, by which rates of products are known."""
        return self.dtype if self.precision is None else NAMES[Arithmetic(self.dtype, self.precision)]

    @property
    def unit(self) -> float:
        """The unit roundoff of products; that of fp8 is not bounded, so it is that of the dtype."""
        return UNITS.get(self.precision or "", dtype_of(self.dtype).unit)

    @property
    def storage(self) -> np.dtype[Any]:
        """The numpy dtype that stores an element of A and B; for bits a word of them."""
        if self.ring is not None:
            return np.dtype(np.uint64 if self.dtype == BITS else self.dtype)
        return dtype_of(self.dtype).numpy

    @property
    def result(self) -> np.dtype[Any]:
        """The numpy dtype that stores an element of C; for bits a word of them."""
        if self.ring is not None:
            exact = np.dtype(object if self.out_dtype == PYTHON else np.int64)
            return self.storage if self.dtype == BITS else exact
        return np.dtype(np.int32) if self.dtype == "int8" else self.storage

    @property
    def exact(self) -> bool:
        """True if products and sums are exact, modulo two to the number of bits or in the ring."""
        return self.ring is not None or self.storage.kind == "i"

    @property
    def itemsize(self) -> int:
        """Bytes of an element of A and B."""
        return self.storage.itemsize

    @property
    def flops(self) -> int:
        """Operations of the classical product: 2 m k n per matrix."""
        return 2 * self.m * self.k * self.n * math.prod(self.batch)

    def check(self, a: Matrix, b: Matrix, out: Matrix | None) -> None:
        """Check that these arrays match this request.

        Raises:
            PlanError: they do not.
        """
        dtype = self.dtype if self.dtype == "bfloat16" and a.dtype == np.uint16 else None
        actual = Request.of(a, b, out, dtype=dtype, max_abs=self.max_abs)
        if (actual.shape, actual.dtype, actual.batch) != (self.shape, self.dtype, self.batch):
            raise PlanError(f"the plan is for {self}, not for {actual}; plan again")
        for label, planned, given in zip("ABC", self.layouts, actual.layouts, strict=True):
            if planned is not given:
                raise PlanError(f"the plan is for {label} stored by {planned}, not {given}; plan again")

    def __repr__(self) -> str:
        return line(f"request {self}")

    def __str__(self) -> str:
        batch = f"{'x'.join(map(str, self.batch))} of " if self.batch else ""
        what = "" if (triangle := self.triangle) is None else f":{triangle}"
        what = what if self.mask is None else f":{self.mask.name}"
        if is_factored(self.structures[0]):
            what = f":{self.structures[0].name}"
        where = f" over {self.ring}" if self.ring is not None else ""
        precise = f" in {self.precision}" if self.precision is not None else ""
        return f"{batch}{self.m}x{self.k}x{self.n}{what} {self.dtype}{precise}{where}"


def class_request(request: Request) -> Request:
    """Return the request whose plan is used for this one.

    On a GPU the number of rows (m, or n of a product by a factored matrix) is rounded up to six binary digits, so that
    a new one needs no new plan; on the CPU it is the request itself.
    """
    if request.device == "cuda" and request.is_dense:
        return replace(request, m=_rounded(request.m))
    if request.device == "cuda" and is_factored(request.structures[0]):
        return replace(request, n=_rounded(request.n))
    return request


def _rounded(rows: int) -> int:
    step = 1 << max(rows.bit_length() - 6, 0)
    return -(-rows // step) * step


def need_matrices(**operands: Any) -> None:
    """Raise PlanError unless all arrays or tensors have at least two dimensions."""
    for name, operand in operands.items():
        if len(operand.shape) < 2:
            raise PlanError(f"{name} has {len(operand.shape)} dimensions; reshape it to a matrix (at least 2)")


def product_sizes(a: Any, b: Any) -> tuple[int, int, int]:
    """Return (m, k, n) of the product of two arrays or tensors.

    Raises:
        PlanError: one is no matrix, or the inner sizes differ.
    """
    if len(a.shape) < 2 or len(b.shape) < 2:
        need_matrices(a=a, b=b)
    (m, k), (inner, n) = a.shape[-2:], b.shape[-2:]
    if k != inner:
        raise PlanError(f"inner sizes differ: a is {m} x {k} and b is {inner} x {n}; transpose or slice one")
    return m, k, n


def matmul_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the product of operands of these shapes that fit each other, vectors included.

    Raises:
        PlanError: the leading sizes do not broadcast.
    """
    return (*_broadcast(a[:-2], b[:-2]), *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


def _broadcast(batch_a: tuple[int, ...], batch_b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the leading shape of a product.

    Raises:
        PlanError: the leading shapes do not broadcast.
    """
    if batch_a == batch_b:
        return batch_a
    try:
        return np.broadcast_shapes(batch_a, batch_b)
    except ValueError:
        raise PlanError(f"leading sizes {batch_a} and {batch_b} do not broadcast; reshape one") from None


def _bytes_reason(dtype: str, device: str, max_abs: int | None, dense: bool) -> str | None:
    """Return the reason why elements of one byte cannot be multiplied, or None."""
    if dtype == "int8" and device == "cuda" and not dense:
        return "int8 products on a GPU are of plain matrices; convert to float16"
    if dtype not in ("int8", "uint8") or (dtype == "int8" and max_abs is not None):
        return None
    if dtype == "int8":
        other = "convert with .astype(np.int32)" if device == "cpu" else "convert to float16"
        mend = f"state the largest magnitude of the entries (max_abs=), or {other}"
    else:
        mend = "convert with .astype(np.int32), whose product is exact"
    return f"dtype {dtype} is not supported as it is: a sum of two {dtype} blocks needs 9 bits; {mend}"


def structures_of(triangle: Triangle) -> tuple[Structure, Structure, Structure]:
    """Return the structures of A, B and C of a triangular product."""
    a, b, c = (Triangular(triangle.upper, triangle.shared) if side == triangle.side else DENSE for side in SIDES)
    return a, b, c


def layout_of(matrix: Matrix) -> Layout:
    """Return the layout of the last two dimensions that BLAS and our kernels support without a copy."""
    flags = matrix.flags
    if not flags.aligned:
        return Layout.SCATTERED
    if flags.c_contiguous and matrix.size:
        return Layout.ROWS
    (rows, cols), (row, col) = matrix.shape[-2:], matrix.strides[-2:]
    item = matrix.itemsize
    if (col == item or cols == 1) and (rows == 1 or (row >= cols * item and row % item == 0)):
        return Layout.ROWS
    if (row == item or rows == 1) and (cols == 1 or (col >= rows * item and col % item == 0)):
        return Layout.COLUMNS
    return Layout.SCATTERED


def _overlap(x: Matrix, y: Matrix) -> bool:
    try:
        return np.shares_memory(x, y, max_work=10_000)  # type: ignore[arg-type]  # numpy's stub accepts -1 and 0 only
    except np.exceptions.TooHardError:
        return True  # assumed shared: costs a copy at most
