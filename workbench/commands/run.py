"""`lcma run`"""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from ...errors import LcmaError, PlanError, SchemeFormatError
from ...home import write_atomic
from ...schemes_db import Kind, Scheme
from ..schemes import scheme_argument
from ..timing import gflops

_NPY_MAGIC = b"\x93NUMPY"
DTYPES = ("float32", "float64", "int64")


@click.command("run")
@click.argument("scheme", metavar="SCHEME")
@click.argument("a", metavar="A.npy")
@click.argument("b", metavar="B.npy")
@click.option("--levels", type=click.IntRange(0, 12), default=1, show_default=True, help="Levels of recursion.")
@click.option("--dtype", type=click.Choice(DTYPES), help="Convert the operands first. Default: as they are.")
@click.option(
    "--max-abs", type=click.IntRange(min=0), help="Largest magnitude of an entry of integer operands; int8 needs it."
)
@click.option("--out", metavar="C.npy", help="Where to write the product. Default: it is not kept.")
@click.option("--check", is_flag=True, help="Compare with the classical product: in float64, or exactly for integers.")
def command(
    scheme: str, a: str, b: str, levels: int, dtype: str | None, max_abs: int | None, out: str | None, check: bool
) -> int:
    """Multiply two .npy matrices by a certified scheme.

    The files are memory-mapped; leading dimensions are a batch. A scheme for a triangular or
    masked target reads or writes the triangle that its target names.
    """
    found, certificate = scheme_argument(scheme)
    left, right = _operand(a, dtype), _operand(b, dtype)
    from ...kernels import matmul

    start = time.perf_counter()
    product = matmul(left, right, (found, certificate), levels, max_abs=max_abs)
    seconds = time.perf_counter() - start
    m, k = left.shape[-2:]
    n = right.shape[-1]
    batch = int(np.prod(product.shape[:-2], dtype=np.int64))
    click.echo(
        f"{found!r} {m} x {k} x {n}{f' x {batch}' if batch != 1 else ''} {product.dtype}, {levels} levels: "
        f"{seconds:.3f} s, {gflops(m, k, n * batch, seconds):.1f} effective GFLOP/s (first call, compiling included)"
    )
    if out is not None:
        _save(Path(out), product)
        click.echo(f"written: {out}")
    return _check(found, left, right, product) if check else 0


def _operand(file: str, dtype: str | None) -> npt.NDArray[Any]:
    """A memory-mapped matrix of a dtype that the kernels know."""
    try:
        with open(file, "rb") as stream:
            magic = stream.read(len(_NPY_MAGIC))
        if magic != _NPY_MAGIC:
            raise SchemeFormatError("is not a .npy matrix: it does not start as one", file)
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise SchemeFormatError(f"can't be read: {error.strerror or error}", file) from None
    except SchemeFormatError:
        raise
    except (ValueError, EOFError, SyntaxError) as error:
        raise SchemeFormatError(f"is not a .npy matrix: {str(error).splitlines()[0]}", file) from None
    matrix: npt.NDArray[Any] = array
    if array.ndim < 2:
        raise SchemeFormatError(f"has {array.ndim} dimension(s); a matrix has two or more", file)
    if dtype is None or array.dtype == dtype:
        return matrix
    if not np.issubdtype(array.dtype, np.number) or np.issubdtype(array.dtype, np.complexfloating):
        raise PlanError(f"{file} is {array.dtype}, which can't become {dtype}")
    if np.issubdtype(np.dtype(dtype), np.integer) and not np.issubdtype(array.dtype, np.integer):
        raise PlanError(f"{file} is {array.dtype}; converting it to {dtype} would lose its fractions")
    return array.astype(dtype)


def _save(path: Path, product: npt.NDArray[Any]) -> None:
    buffer = io.BytesIO()
    np.save(buffer, product)
    try:
        write_atomic(path, buffer.getvalue())
    except OSError as error:
        raise LcmaError(f"{path} can't be written: {error.strerror}") from None


def structured_product(scheme: Scheme, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The classical product with the parts that the target calls absent cut away, sizes in any relation to the grid."""
    target = scheme.target
    left, right = (_cut(matrix, kinds) for matrix, kinds in ((a, target.a), (b, target.b)))
    return _cut(left @ right, target.c)


def _cut(matrix: npt.NDArray[Any], kinds: tuple[tuple[Kind, ...], ...]) -> npt.NDArray[Any]:
    """Zero what is absent; block borders stand at multiples of the rounded-up block size."""
    if all(kind is Kind.FULL for row in kinds for kind in row):
        return matrix
    rows, cols = (-(-size // parts) for size, parts in zip(matrix.shape[-2:], (len(kinds), len(kinds[0])), strict=True))
    i, j = np.arange(matrix.shape[-2]), np.arange(matrix.shape[-1])
    kind = np.array(kinds, dtype=np.int64)[(i // rows)[:, None], (j // cols)[None, :]]
    row, col = (i % rows)[:, None], (j % cols)[None, :]
    keep = (kind == Kind.FULL) | ((kind == Kind.LOWER) & (row >= col)) | ((kind == Kind.UPPER) & (row <= col))
    return np.where(keep, matrix, np.zeros((), matrix.dtype))


def _check(scheme: Scheme, a: npt.NDArray[Any], b: npt.NDArray[Any], product: npt.NDArray[Any]) -> int:
    if np.issubdtype(product.dtype, np.integer):
        wide = [matrix.astype(product.dtype) for matrix in (a, b)]
        wrong = int((product != structured_product(scheme, *wide)).sum())
        click.echo(f"check: {'exact' if not wrong else f'{wrong} of {product.size} entries are wrong'}")
        return int(wrong > 0)
    wide = [matrix.astype(np.float64) for matrix in (a, b)]
    truth, baseline = structured_product(scheme, *wide), structured_product(scheme, a, b)
    norm = float(np.linalg.norm(truth)) or 1.0
    ours, theirs = (float(np.linalg.norm(result - truth)) / norm for result in (product, baseline))
    click.echo(f"check: relative error {ours:.2e} against float64 (classical {product.dtype}: {theirs:.2e})")
    bound = 1e-2 if product.dtype == np.float32 else 1e-8
    return int(not ours <= bound)
