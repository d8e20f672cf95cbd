"""Products in tf32 on a GPU by one product of float16: rows of A and columns of B are scaled by powers of two first.

Both formats have 10 explicit bits of mantissa, but tensor cores multiply float16 at twice the rate. Scaled entries
are rounded as in tf32, except those far below the largest of their row or column; see `scaled_half_product`.
On an H200 this was 1.20 to 1.94 times as fast as torch in tf32, 1.53 in the geometric mean, for 24 layers of language
models that take torch 1.2 to 15 ms (`lcma bench gpu --device cuda --dtype tf32 --sample 24 --rows 'layer tf32*'`).
"""

from __future__ import annotations

from ..arrays import Tensor, torch
from .float16_pairs import ScaledLines, folded, loses, pitch_of, scale_lines
from .launch import on_device
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

BLOCKS = (64, 128), (128, 64)
"""Rows and columns of A, and of B, that one program scales. 8192 x 8192 on an H200: 0.179 and 0.198 ms;
blocks of 32 x 128 took 0.205 and 0.252."""


def packed_bytes(k: int, n: int) -> int:
    """Return the bytes of a scaled B (k, n); see `packed`."""
    return 2 * k * pitch_of(n) + 4 * (2 * n + k)


def packed(b: Tensor) -> Tensor:
    """Return B (k, n) of any strides, scaled, as bytes; see `unpacked`."""
    made = torch.empty(packed_bytes(*b.shape), dtype=torch.uint8, device=b.device)
    into = unpacked(made, *b.shape)
    with on_device(b):
        folded(scale_lines(b, 1, into.stack, BLOCKS[1], shifts=into.shifts), (into.sums, into.weights))
    return made


def unpacked(made: Tensor, k: int, n: int) -> ScaledLines:
    """Return the scaled B (k, n) as views of the result of `packed`."""
    size = 2 * k * pitch_of(n)
    stack = made[:size].view(torch.float16).view(1, k, pitch_of(n))[..., :n]
    shifts, sums, weights = made[size:].view(torch.int32).split([n, n, k])
    return ScaledLines(stack, shifts, sums.view(torch.float32), weights.view(torch.float32))


def scaled_rows(a: Tensor) -> ScaledLines:
    """Return A (m, k) of any strides, scaled by rows."""
    m, k = a.shape
    stack = torch.empty((1, m, pitch_of(k)), dtype=torch.float16, device=a.device)[..., :k]
    with on_device(a):
        return folded(scale_lines(a, 0, stack, BLOCKS[0]))


def scaled_half_product(
    a: Tensor, b: Tensor, out: Tensor, right: ScaledLines | None = None, tile: Tile = TILE, plain: Tile = PLAIN_TILE
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
        multiply_plain(loses(left, right, ROUNDING), a, b, out, plain)


def multiply_scaled(left: ScaledLines, right: ScaledLines, out: Tensor, tile: Tile = TILE) -> None:
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


SCALED_HALF = PackedArithmetic(
    lambda a, b, scaled, out: scaled_half_product(a, b, out, unpacked(scaled, *b.shape)),
    packed,
    packed_bytes,
    lambda device: missing_accelerator(device),
)
