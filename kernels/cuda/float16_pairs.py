"""Products of float32 on a GPU by three products of pairs of float16: about as accurate as strict float32, but faster.

Rows of A and columns of B are scaled by powers of two into the range of float16, then x = high + low, with an error
of 2^-22 |x| + 2^-39 max|x| over the row or column. On an H200, 8192 x 8192 x 8192 normal entries: relative error in
the Frobenius norm 2.5e-7, the vendor's strict product 1.6e-6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import PlanError
from ..arrays import Tensor, torch
from .launch import on_device, starter
from .tiles import GROUP as GROUP
from .tiles import Tile, launch

TILE = Tile(128, 128, 64, 8, 3)
"""The fastest on an H200 at 8192: 206 Tflop/s, the three products counted as one. An inner size of 32 with 4 stages
reaches 173, column-major B 185, 64 x 128 with 4 warps 156, sums promoted every second step 183."""

TOP = 14
"""Scaled entries are below 2^TOP, so that no part is infinite."""

MOST_SHIFT = 120
"""Maximum exponent of the power of two that scales a row or column."""

ROUNDING, LOST = 2.0**-22, 2.0**-25
"""Error of an element of a pair relative to itself, and the minimum error in units of the scaled matrix."""

ALIGNED = 8
"""Elements of float16 that rows of pairs are multiples of, as the tensor memory accelerator requires."""

BLOCKS = (32, 128), (64, 64)
"""Rows and columns of A, and of B, that one program splits: more columns of B would take more registers than there are.
"""

INFINITE = 0x7F800000
"""Bits of infinity in float32."""

LONG = 1024
"""Maximum elements of a line per program in `largest_bits` and `line_sums`."""

SPAN, PARTS = 256, 8
"""Elements of a line that one program of `largest_bits` reads where those of a line are not adjacent: of fewer lines
programs would be too few. More parts than the second are joined first: scaling reads all of them per program."""

FOLDED = (16, 64)
"""Rows and columns of partial sums that one program of `fold_sums` adds."""

LINES, ALONG, SIZE = 64, 64, 1024
"""Lines per program of `check`, elements of a line that it reads together, and weights."""


def pitch_of(cols: int) -> int:
    """Return the row stride of pairs, in elements."""
    return -(-cols // ALIGNED) * ALIGNED


@dataclass(frozen=True)
class ScaledLines:
    """A matrix in one or two parts of float16, its lines (rows of A, columns of B) scaled by powers of two.

    `stack`: the parts, (parts, rows, cols), rows `pitch_of(cols)` elements apart; of two the higher one is the first.
    `shifts`: the exponents of the lines, int32. `sums` of the scaled magnitudes of each line, and `weights` (k) of
    those across the lines: by tiles, (tiles, lines) and (tiles, k), until they are folded.
    """

    stack: Tensor
    shifts: Tensor
    sums: Tensor
    weights: Tensor

    @property
    def values(self) -> Tensor:
        """The first part."""
        return self.stack[0]


def pairs_product(a: Tensor, b: Tensor, out: Tensor, tile: Tile = TILE) -> Tensor:
    """Compute out = a b for float32 matrices (m, k) and (k, n) of any strides.

    Accuracy: with E = |A| |B|, the error of a row or column of C by pairs is of the order of that of float32,
    relative to the same row or column of E. Rows of A and columns of B may have any scale from 2^-100 to 2^100.
    Where the sizes of entries along k are too far apart for that, the product is computed again with columns of A and
    rows of B scaled by powers of two that balance them. `out` shares no memory with a or b.

    Raises:
        PlanError: an entry is not finite, or the sizes of entries along k are too far apart for pairs even so;
            `out` is undefined then.
    """
    with on_device(a):
        found = _product(a, b, out, tile)
        if a.is_meta:
            return out
        lost, total = found.tolist()
        require_finite(math.isfinite(total))
        if lost and _product(a, b, out, tile, balance(a, b)).tolist()[0]:
            raise PlanError(
                'entries along k are too far apart for precision="fp32-accurate", whatever powers of two scale columns '
                "of a and rows of b; leave precision away"
            )
    return out


def _product(a: Tensor, b: Tensor, out: Tensor, tile: Tile, along: Tensor | None = None) -> Tensor:
    """Compute `pairs_product` with shifts along k for B, and their opposites for A.

    Return whether a row or column of C may lose too much, and the sum of all scaled magnitudes, as one tensor.
    """
    left = pairs_of(a, 0, None if along is None else -along)
    right = pairs_of(b, 1, along)
    multiply_pairs(left.stack, right.stack, out.unsqueeze(0), (left.shifts, right.shifts), tile)
    # The kernels of the check are queued after the product, which runs meanwhile.
    flag = loses(folded(left), folded(right), ROUNDING)
    return torch.stack((flag[0].float(), left.sums.sum() + right.sums.sum()))


def balance(a: Tensor, b: Tensor) -> Tensor:
    """Return exponents (k,) int32: 2^-e times column k of A and 2^e times row k of B have like largest magnitudes."""
    of_a, of_b = (largest_of(x, axis).amax(0) >> 23 for x, axis in ((a, 1), (b, 0)))
    return (of_a - of_b) >> 1


def pairs_of(x: Tensor, axis: int, along: Tensor | None = None) -> ScaledLines:
    """Return the pairs of A (axis 0, a scale for each row) or of B (1, one for each column); see `scale_lines`."""
    return scale_lines(x, axis, stack_of_pairs(x, 1, *x.shape), BLOCKS[axis], along)


def scale_lines(
    x: Tensor,
    axis: int,
    stack: Tensor,
    block: tuple[int, int],
    along: Tensor | None = None,
    shifts: Tensor | None = None,
) -> ScaledLines:
    """Scale the rows (axis 0) or columns (axis 1) of x, and round them to the one or two parts of `stack`.

    A program has `block` rows and columns. `along`: exponents (int32) of further powers of two along k, for entries
    that are finite. `shifts`: where the exponents of the lines are stored.
    """
    from .float16_pairs_kernel import split_pairs

    rows, cols = x.shape
    lines, inner = x.shape[axis], x.shape[1 - axis]
    largest = largest_of(x, axis, along, LONG if x.stride(1 - axis) == 1 else SPAN)
    if largest.shape[0] > PARTS:
        largest = largest.amax(0, keepdim=True)
    grid = (-(-rows // block[0]), -(-cols // block[1]))
    if shifts is None:
        shifts = torch.empty(lines, dtype=torch.int32, device=x.device)
    weights, sums = x.new_empty((grid[axis], inner)), x.new_empty((grid[1 - axis], lines))
    starter(split_pairs, grid, x)(
        *(x, x if along is None else along, largest, shifts, stack[0], stack[-1], weights, sums),
        *(rows, cols, x.stride(0), x.stride(1), stack.stride(1), largest.shape[0]),
        **{"AXIS": axis, "SHIFTED": along is not None, "LOW": len(stack) == 2},
        **{"TOP": TOP, "MOST": MOST_SHIFT, "M": block[0], "N": block[1]},
        num_warps=4,
    )
    return ScaledLines(stack, shifts, sums, weights)


def folded(made: ScaledLines, into: tuple[Tensor, Tensor] | None = None) -> ScaledLines:
    """Return scaled lines with the sums of all tiles added up, stored in these `sums` and `weights`."""
    from .float16_pairs_kernel import fold_sums

    (tiles, lines), (across, inner) = made.sums.shape, made.weights.shape
    sums, weights = into or (made.sums.new_empty(lines), made.sums.new_empty(inner))
    starter(fold_sums, (-(-max(lines, inner) // FOLDED[1]), 2), made.sums)(
        *(made.weights, weights, made.sums, sums, across, inner, tiles, lines),
        **{"ROWS": FOLDED[0], "SIZE": FOLDED[1]},
        num_warps=4,
    )
    return ScaledLines(made.stack, made.shifts, sums, weights)


def loses(left: ScaledLines, right: ScaledLines, rounding: float) -> Tensor:
    """Return a flag (1,) int32: whether a row or column of C may lose too much, or an entry is not finite.

    An element of C loses at most LOST (sum|a| + sum|b|) over k, of scaled a and b, by entries far below the largest: in
    a row or column that must not exceed `rounding` times the same row or column of |A| |B|. Both are folded.
    """
    from .float16_pairs_kernel import check

    (m, k), n = left.values.shape, right.values.shape[1]
    flag = torch.zeros(1, dtype=torch.int32, device=left.stack.device)
    starter(check, (-(-max(m, n) // LINES), 2), flag)(
        *(left.values, right.values, left.sums, right.sums, left.weights, right.weights, flag),
        *(m, k, n, left.stack.stride(1), right.stack.stride(1)),
        **{"LOST": LOST, "ROUNDING": rounding, "LINES": LINES, "ALONG": ALONG, "SIZE": SIZE},
        num_warps=4,
    )
    return flag


def largest_of(x: Tensor, axis: int, along: Tensor | None = None, span: int = LONG) -> Tensor:
    """Return the bits of the largest magnitudes of parts of each row (axis 0) or column (1): int32 (parts, lines).

    `along`: see `pairs_of`. `span`: elements of a part.
    """
    from .float16_pairs_kernel import largest_bits

    given, shifted = [x if along is None else along], along is not None
    (found,) = by_lines(largest_bits, x, axis, given, [torch.int32], span, SHIFTED=shifted)
    return found


def stack_of_pairs(like: Tensor, count: int, rows: int, cols: int) -> Tensor:
    """Allocate a stack (2 count, rows, cols) of pairs, with rows as the tensor memory accelerator requires."""
    return torch.empty((2 * count, rows, pitch_of(cols)), dtype=torch.float16, device=like.device)[..., :cols]


def multiply_pairs(
    lefts: Tensor, rights: Tensor, out: Tensor, shifts: tuple[Tensor, Tensor] | None, tile: Tile = TILE
) -> None:
    """Compute out (count, m, n), the products of two stacks of pairs, on the current device.

    `shifts`: exponents of the powers of two that divide rows and columns of a single product; None: no division.
    """
    from triton.tools.tensor_descriptor import TensorDescriptor

    from .float16_pairs_kernel import pairs_gemm

    (count, m, n), k = out.shape, lefts.shape[2]
    described = [
        TensorDescriptor.from_tensor(stack.flatten(0, 1), block)
        for stack, block in ((lefts, [tile.m, tile.k]), (rights, [tile.k, tile.n]))
    ]
    grid = (count * -(-m // tile.m) * -(-n // tile.n),)
    arguments = *described, *(shifts or (out, out)), out, count, m, k, n, *out.stride()
    launch(pairs_gemm, grid, out, arguments, tile, GROUP=GROUP, SCALED=shifts is not None)


def by_lines(
    kernel: Any,
    x: Tensor,
    axis: int,
    given: list[Tensor],
    results: list[Any],
    span: int,
    *more: int,
    spare: Sequence[Tensor] = (),
    **constants: Any,
) -> list[Tensor]:
    """Run a kernel over the lines of x: its rows (axis 0) or columns (1), `span` elements of a line per program.

    Results are (parts, lines), of these dtypes; `spare`: stand for the kernel's further ones.
    """
    lines, length = x.shape[axis], x.shape[1 - axis]
    steps = x.stride(axis), x.stride(1 - axis)
    # Threads access contiguous memory: the elements of a line, or several lines.
    block = (4, 512) if steps[1] == 1 else (128, 16)
    parts = -(-length // span)
    made = [torch.empty((parts, lines), dtype=dtype, device=x.device) for dtype in results]
    starter(kernel, (-(-lines // block[0]), parts), x)(
        *(x, *given, *made, *spare, lines, length, *steps, span, *more),
        **{"LINES": block[0], "ALONG": block[1], **constants},
        num_warps=4,
    )
    return made


def line_sums_of(
    x: Tensor, axis: int, shifts: Tensor, weights: Sequence[Tensor] = (), span: int = LONG, block: int = 1
) -> list[Tensor]:
    """Return sums of scaled magnitudes of parts of each row (axis 0) or column (1): (parts, lines).

    `shifts`: exponents of powers of two by element of a line; with `weights`, see `line_sums`, by line, and three sums.
    """
    from .float16_pairs_kernel import line_sums

    spare = [] if weights else [x] * 2
    given, results = [shifts, *weights, *spare], [torch.float32] * (1 + len(weights))
    return by_lines(line_sums, x, axis, given, results, span, block, spare=spare, WEIGHTED=bool(weights))


def require_finite(finite: bool) -> None:
    """Raise PlanError unless all entries are finite."""
    if not finite:
        raise PlanError('a or b holds an infinity or NaN; precision="fp32-accurate" needs finite entries')
