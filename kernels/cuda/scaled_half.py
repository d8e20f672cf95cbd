"""Products in tf32 on a GPU by one product of float16: rows of A and columns of B are scaled by powers of two first.

Both formats have 10 explicit bits of mantissa, but tensor cores multiply float16 at twice the rate. Scaled entries
are rounded as in tf32, except those far below the largest of their row or column; see `scaled_half_product`.
On an H200 this was 1.20 to 1.94 times as fast as torch in tf32, 1.53 in the geometric mean, for 24 layers of language
models that take torch 1.2 to 15 ms (`lcma bench gpu --device cuda --dtype tf32 --sample 24 --rows 'layer tf32*'`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import Tensor, torch
from .float16_pairs import LONG, LOST, MOST_SHIFT, TOP, largest_of, pitch_of
from .launch import on_device, starter
from .packed_product import PackedArithmetic
from .stack import missing_accelerator, programs_of, rows_of
from .tiles import GROUP as GROUP
from .tiles import Tile, launch

TILE = Tile(128, 256, 64, 8, 3)
"""Tile of the product: 1.54 ms on an H200 at 8192 and 12.7 to 12.9 at 16384, with C in float32. torch.mm of the same
float16, which the scales would have to follow, took 1.55 and 12.9; tiles of C stored in halves, without the tensor
memory accelerator, 1.56 and 13.5."""

PLAIN_TILE = Tile(128, 256, 32, 8, 3)
"""Tile of the product in tf32 that replaces it if the check fails: 1.23 ms on an H200 at 4096, torch's 0.35."""

ROUNDING = 2.0**-13
"""Loss by small entries that is allowed in a row or column of C, relative to |A| |B|: a quarter of a rounding."""

FACTOR = 1.125
"""Bound of the error of a row or column of C relative to that of tf32: two roundings and a quarter of one, over two."""

BLOCKS, WARPS = ((64, 128), (128, 64)), 4
"""Rows and columns of A, and of B, that one program scales, and its warps. 8192 x 8192 on an H200: 0.179 and 0.198 ms;
blocks of 32 x 128 took 0.205 and 0.252."""

SPAN, PARTS = 256, 8
"""Elements of a line that one program of `largest_bits` reads where those of a line are not adjacent: of fewer lines
programs would be too few. More parts than the second are joined first: scaling reads all of them per program."""

FOLDED = (16, 64)
"""Rows and columns of partial sums that one program of `fold_sums` adds."""

LINES, ALONG, SIZE = 64, 64, 1024
"""Lines per program of `check`, elements of a line that it reads together, and weights."""


@dataclass(frozen=True)
class ScaledHalf:
    """A matrix in float16, its lines (rows of A, columns of B) scaled by powers of two.

    `values` (rows, cols), rows `pitch_of(cols)` elements apart; `shifts` the exponents of the lines, int32; `sums`
    of the scaled magnitudes of each line, and `weights` (k) of those across the lines.
    """

    values: Tensor
    shifts: Tensor
    sums: Tensor
    weights: Tensor


def packed_bytes(k: int, n: int) -> int:
    """Return the bytes of a scaled B (k, n); see `packed`."""
    return 2 * k * pitch_of(n) + 4 * (2 * n + k)


def packed(b: Tensor) -> Tensor:
    """Return B (k, n) of any strides, scaled, as bytes; see `unpacked`."""
    made = torch.empty(packed_bytes(*b.shape), dtype=torch.uint8, device=b.device)
    with on_device(b):
        _scale(b, 1, unpacked(made, *b.shape))
    return made


def unpacked(made: Tensor, k: int, n: int) -> ScaledHalf:
    """Return the scaled B (k, n) as views of the result of `packed`."""
    size = 2 * k * pitch_of(n)
    values = made[:size].view(torch.float16).view(k, pitch_of(n))[:, :n]
    shifts, sums, weights = made[size:].view(torch.int32).split([n, n, k])
    return ScaledHalf(values, shifts, sums.view(torch.float32), weights.view(torch.float32))


def scaled_rows(a: Tensor) -> ScaledHalf:
    """Return A (m, k) of any strides, scaled by rows."""
    m, k = a.shape
    values = torch.empty((m, pitch_of(k)), dtype=torch.float16, device=a.device)[:, :k]
    shifts = torch.empty(m, dtype=torch.int32, device=a.device)
    made = ScaledHalf(values, shifts, a.new_empty(m), a.new_empty(k))
    with on_device(a):
        _scale(a, 0, made)
    return made


def scaled_half_product(
    a: Tensor, b: Tensor, out: Tensor, right: ScaledHalf | None = None, tile: Tile = TILE, plain: Tile = PLAIN_TILE
) -> None:
    """Compute out = a b in tf32 for float32 matrices (m, k) and (k, n) of any strides.

    `right` is B scaled before; None: it is scaled now. `out` shares no memory with a or b.

    Accuracy: scale each row of A and each column of B by a power of two so that its largest magnitude is between 2^13
    and 2^14, E = |A| |B| of these. Scaled entries are rounded to float16, x (1 + d) + t with |d| <= 2^-11 and
    |t| <= 2^-25. To first order, the errors of a row or column of C by the d add up to at most 2^-10 of the sum of the
    row or column of E, which is the bound of tf32 too, and those by the t to at most 2^-25 (sum |a| + sum |b|) over
    its elements. Where that exceeds 2^-13 of the sum of E, in any row or column, or an entry is not finite, all of C
    is computed again in tf32: the error of a row or column is bounded by FACTOR times that of tf32, apart from sums in
    float32. The sum of a line of C may hide the loss of a small element, whose entries along k are far below the
    largest ones of their lines.

    The check is on the device, so that the host does not wait, and a CUDA graph can capture all of it.
    """
    with on_device(a):
        left = scaled_rows(a)
        right = unpacked(packed(b), *b.shape) if right is None else right
        multiply_scaled(left, right, out, tile)
        flag = torch.zeros(1, dtype=torch.int32, device=a.device)
        check(left, right, flag)
        multiply_plain(flag, a, b, out, plain)


def check(left: ScaledHalf, right: ScaledHalf, flag: Tensor) -> None:
    """Set the flag (int32) if a row or column of C may lose too much; see `scaled_half_product`."""
    from . import scaled_half_kernel

    (m, k), n = left.values.shape, right.values.shape[1]
    starter(scaled_half_kernel.check, (-(-max(m, n) // LINES), 2), flag)(
        *(left.values, right.values, left.sums, right.sums, left.weights, right.weights, flag),
        *(m, k, n, left.values.stride(0), right.values.stride(0)),
        **{"LOST": LOST, "ROUNDING": ROUNDING, "LINES": LINES, "ALONG": ALONG, "SIZE": SIZE},
        num_warps=4,
    )


def multiply_scaled(left: ScaledHalf, right: ScaledHalf, out: Tensor, tile: Tile = TILE) -> None:
    """Compute out (m, n) = A B of scaled operands, in float32, on the current device."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    from .scaled_half_kernel import half_gemm

    (m, k), n = left.values.shape, right.values.shape[1]
    programs = min(programs_of(out.device), -(-m // tile.m) * -(-n // tile.n))
    described = [
        TensorDescriptor.from_tensor(values, block)
        for values, block in ((left.values, [tile.m, tile.k]), (right.values, [tile.k, tile.n]))
    ]
    found = rows_of(out.unsqueeze(0))
    stored = None if found is None or found[1] else TensorDescriptor.from_tensor(found[0], [tile.m, tile.n // 4])
    given = *described, left.shifts, right.shifts, out if stored is None else stored
    sizes = m, k, n, *out.stride(), programs
    launch(half_gemm, (programs,), out, (*given, *sizes), tile, DESCRIBED=stored is not None, GROUP=GROUP)


def multiply_plain(flag: Tensor, a: Tensor, b: Tensor, out: Tensor, tile: Tile = PLAIN_TILE) -> None:
    """Compute out = a b in tf32 if the flag is set, on the current device."""
    from .scaled_half_kernel import guarded_gemm

    (m, k), n = a.shape, b.shape[1]
    programs = min(programs_of(out.device), -(-m // tile.m) * -(-n // tile.n))
    if b.stride(0) != 1 and a.stride(1) == 1:
        # C^T = B^T A^T: tensor cores read the right factor of tf32 along k only.
        a, b, out, m, n = b.mT, a.mT, out.mT, n, m
    sizes = m, k, n, *a.stride(), *b.stride(), *out.stride(), programs
    launch(guarded_gemm, (programs,), out, (flag, a, b, out, *sizes), tile, GROUP=GROUP)


def _scale(x: Tensor, axis: int, made: ScaledHalf) -> None:
    """Scale and round the lines of x, rows (axis 0) or columns (1), into `made`, with its sums."""
    from .float16_pairs_kernel import split_pairs
    from .scaled_half_kernel import fold_sums

    rows, cols = x.shape
    lines, inner = x.shape[axis], x.shape[1 - axis]
    largest = largest_of(x, axis, span=LONG if x.stride(1 - axis) == 1 else SPAN)
    if largest.shape[0] > PARTS:
        largest = largest.amax(0, keepdim=True)
    block = BLOCKS[axis]
    grid = (-(-rows // block[0]), -(-cols // block[1]))
    across, parts = x.new_empty((grid[axis], inner)), x.new_empty((grid[1 - axis], lines))
    starter(split_pairs, grid, x)(
        *(x, x, largest, made.shifts, made.values, made.values, across, parts),
        *(rows, cols, x.stride(0), x.stride(1), made.values.stride(0), largest.shape[0]),
        **{"AXIS": axis, "SHIFTED": False, "LOW": False},
        **{"TOP": TOP, "MOST": MOST_SHIFT, "M": block[0], "N": block[1]},
        num_warps=WARPS,
    )
    starter(fold_sums, (-(-max(lines, inner) // FOLDED[1]), 2), x)(
        *(across, made.weights, parts, made.sums, across.shape[0], inner, parts.shape[0], lines),
        **{"ROWS": FOLDED[0], "SIZE": FOLDED[1]},
        num_warps=4,
    )


SCALED_HALF = PackedArithmetic(
    lambda a, b, scaled, out: scaled_half_product(a, b, out, unpacked(scaled, *b.shape)),
    packed,
    packed_bytes,
    lambda device: missing_accelerator(device),
)
