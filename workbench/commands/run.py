"""`lcma run`"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from ...errors import PlanError, VerificationError
from ...kernels import Request, plan_for
from ...kernels.bfloat16 import converted, float32_of
from ...kernels.cuda.requests import request_of
from ...kernels.exact.bench import ExactBench, to_host, to_tensor
from ...kernels.exact.bits import BitMatrix
from ...kernels.factored import extra_bytes_for, factored_request, product_dtype
from ...kernels.kronecker import FactoredMatrix
from ...kernels.precision import arithmetic_of
from ...kernels.products.exact import bit_operand, exact_request
from ...kernels.request import PLAIN, structures_of
from ...schemes_db.symmetry import ATTENTION_PRODUCTS
from ..bench.contest import relative
from ..contenders import max_error, relative_error, true_product
from ..destination import claim, writing
from ..help import lcma_command
from ..matrix_files import Operand, as_numpy, check_destination, file_of, read_operand, to_gpu, write_product
from ..options import argument, group, option
from ..output import tell
from ..product_options import ProductOptions, reject
from ..products import FACTORS, Device, Told, causal_name, run_once, within_memory
from ..schemes import AUTO, planned_scheme


@lcma_command
def command(
    *,
    scheme: str = argument("SCHEME|auto|K"),
    a: str = argument("A"),
    b: str | None = argument("[B]"),
    levels: int | None = option(type=click.IntRange(0, 12)),
    product: ProductOptions = group(ProductOptions, "batch"),
    out: str | None = option(metavar="C"),
    check: bool = option(),
) -> int:
    if out is not None:
        claim(file_of(out), [scheme, *(file_of(text) for text in (a, b) if text is not None)])
    if b is None and (matrix := product.factored([scheme], levels=levels)) is not None:
        return tell(run_product(matrix, a, product, out, check))
    if b is None or product.layout is not None or product.max_extra_bytes:
        raise click.UsageError("give SCHEME A B, or K X with a file K that holds a factored matrix")
    if levels == 0:  # no level of any scheme
        plain = "vendor" if product.ring is None else "leaf"
        scheme, levels, product = AUTO, None, replace(product, strategy=product.strategy or plain)
    if product.ring is None:
        return tell(_run(scheme, (a, b), product, levels, out, check))
    reject("--ring", causal=product.causal, dtype=product.dtype)
    product.device.require()
    return tell(run_exact(planned_scheme(scheme), (a, b), product, levels, out, check))


def _run(
    text: str, files: tuple[str, str], product: ProductOptions, levels: int | None, out: str | None, check: bool
) -> Iterator[Told]:
    """Multiply the matrices of two files; yields lines with the facts that each tells."""
    (a, b), device = files, product.device
    causal = causal_name(product.causal)
    chosen = planned_scheme(text, causal is not None)
    device.require()
    left, right = (read_operand(file).converted(product.dtype) for file in (a, b))
    if left.arithmetic != right.arithmetic:
        raise PlanError(f"{a} is {left.arithmetic} and {b} is {right.arithmetic}; convert both with --dtype")
    held = "int32" if left.dtype == "int8" else left.dtype  # int8 is multiplied into int32
    if out is not None:
        check_destination(out, held)
    with device.current():
        x, y = _placed(left, device, causal, 0), _placed(right, device, causal, 1)
        request = _request(x, y, left.arithmetic, device, causal, product.max_abs)
        plan = plan_for(request, chosen, levels, strategy=product.strategy)
        into = f" into {held}" if held != left.dtype else ""
        result, told = run_once(plan, lambda executor: executor.run(x, y), f"{into} on {device}", device)
        yield told
        if out is not None:
            yield write_product(out, as_numpy(result), held), {"out": out}
        if check:
            yield _check(request, chosen, x, y, result)


def _placed(operand: Operand, device: Device, product: str | None, side: int) -> Any:
    """The operand on its device, transposed where the formula of a causal product says so."""
    matrix: Any = operand.matrix
    if device.kind == "cuda":
        matrix = to_gpu(operand.matrix, operand.arithmetic, operand.file)
    return matrix.swapaxes(-1, -2) if product is not None and "^T" in FACTORS[product][side] else matrix


def _request(x: Any, y: Any, arithmetic: str, device: Device, product: str | None, max_abs: int | None) -> Request:
    dtype, precision = arithmetic_of(arithmetic)
    structures = PLAIN if product is None else structures_of(ATTENTION_PRODUCTS[product])
    if device.kind == "cpu":
        held = "bfloat16" if dtype == "bfloat16" else None
        if precision is not None:
            raise PlanError(f"dtype {arithmetic} is of GPUs; leave --dtype out, or give --device cuda")
        return Request.of(x, y, dtype=held, max_abs=max_abs, structures=structures)
    return request_of(x, y, precision, max_abs=max_abs, structures=structures)


def _check(request: Request, scheme: Any, a: Any, b: Any, product: Any) -> Told:
    """Return how far the product is from the truth."""
    truth = true_product(request, scheme, a, b)
    if request.exact:
        wrong = int((product != truth).sum())
        return f"check: {f'{wrong} of {truth.size} entries are wrong' if wrong else 'exact'}", {"correct": not wrong}
    ours = relative_error(request, product, truth)
    theirs = relative_error(request, true_product(request, scheme, a, b, wide=False), truth)
    line = f"check: relative error {ours:.2e} against float64 (classical {request.dtype}: {theirs:.2e})"
    return line, {"correct": ours <= max_error(request), "relative_error": ours, "classical_error": theirs}


BIT_SUFFIX = ".npz"


def run_product(
    matrix: FactoredMatrix, file: str, options: ProductOptions, out: str | None, check: bool
) -> Iterator[Told]:
    """Multiply a stored matrix and X of a file; yields lines with the facts that each tells.

    Raises:
        PlanError, SchemeFormatError: X does not fit, or cannot be read.
        VerificationError: the product is wrong.
    """
    layout, device, strategy = options.layout or "bsf", options.device, options.strategy
    matrix, x = operands(matrix, file, options.dtype, layout)
    kept, precision = matrix.dtype, arithmetic_of(options.dtype or matrix.dtype).precision
    own = product_dtype(kept, device.kind)
    if own != kept:  # a processor widens half precision
        matrix, x = matrix.astype(own), converted(x, kept, own)
    extra = max(options.max_extra_bytes, extra_bytes_for(strategy))
    about: dict[str, Any] = {"device": device.kind, "max_extra_bytes": extra, "precision": precision}
    request = factored_request(matrix.structure, x.shape[1], own, layout, **about)
    device.require()
    with device.current():
        plan = plan_for(request, strategy=strategy)
        with within_memory(request, plan.candidate):
            there = (matrix.factors, x) if device.kind == "cpu" else _on_gpu(matrix, x, request.arithmetic)
        found, told = run_once(plan, lambda executor: executor.run(*there), f", {layout} on {device}", device)
        product = as_numpy(found)
    yield told
    if out is not None:
        stored = converted(np.ascontiguousarray(product.T if layout == "bsf" else product), matrix.dtype, kept)
        yield write_product(out, stored, kept), {"out": out}
    if check:
        if matrix.dtype == "bfloat16":
            matrix, x, product = matrix.astype("float32"), float32_of(x), float32_of(product)
        error = relative(product, matrix.structure.multiply_wide(matrix.factors, x))
        if not error <= max_error(request):
            raise VerificationError(f"the product came out wrong: relative error {error:.1e} against float64")
        yield f"check: relative error {error:.2e} against float64", {"relative_error": error}


def operands(matrix: FactoredMatrix, file: str, dtype: str | None, layout: str) -> tuple[FactoredMatrix, Any]:
    """The matrix, and X (cols, batch) of a file, in one dtype.

    Raises:
        PlanError: X does not fit, or the dtypes differ.
    """
    operand = read_operand(file).converted(dtype)
    matrix = matrix if dtype is None else matrix.astype(arithmetic_of(dtype).dtype)
    if operand.dtype != matrix.dtype:
        raise PlanError(f"{file} is {operand.dtype} and the matrix {matrix.dtype}; convert both with --dtype")
    cols, x = matrix.shape[1], operand.matrix
    features = x.shape[-1] if layout == "bsf" else x.shape[0]
    if x.ndim != 2 or features != cols:
        other = "bsl" if layout == "bsf" else "bsf"
        mend = f"; give --layout {other}" if x.ndim == 2 and cols in x.shape else ""
        wanted = f"(batch, {cols})" if layout == "bsf" else f"({cols}, batch)"
        raise PlanError(f"{file} has shape {x.shape}; {matrix!r} needs {wanted} in layout {layout}{mend}")
    x = np.ascontiguousarray(x)
    return matrix, x.T if layout == "bsf" else x


def _on_gpu(matrix: FactoredMatrix, x: Any, arithmetic: str) -> tuple[list[Any], Any]:
    """The factors and X (cols, batch) on the current GPU; X stored as it is here."""
    factors = [to_gpu(weights, arithmetic) for weights in matrix.factors]
    return factors, to_gpu(x.T, arithmetic).T if x.flags.f_contiguous else to_gpu(x, arithmetic)


def run_exact(
    scheme: Any, files: tuple[str, str], options: ProductOptions, levels: int | None, out: str | None, check: bool
) -> Iterator[Told]:
    """Multiply two files and write the product; yields lines with the facts that each tells.

    Raises:
        PlanError, SchemeFormatError: the operands cannot be read or do not fit.
    """
    ring, device = options.ring, options.device
    assert ring is not None
    a, b = (_operand(file) for file in files)
    bits = isinstance(a, BitMatrix) and isinstance(b, BitMatrix)
    if ring.modulus == 2:
        left, right = bit_operand(a), bit_operand(b)
    else:
        for file, matrix in zip(files, (a, b), strict=True):
            if isinstance(matrix, BitMatrix):
                raise PlanError(f"{file} holds a bit matrix; its products are over Z2, not {ring}")
            if matrix.dtype.kind not in "biu":
                raise PlanError(f"{file} is {matrix.dtype}; exact products are of integers: convert it")
        left, right = a, b
    into_bits = bits and ring.modulus == 2
    if out is not None and into_bits != (Path(out).suffix == BIT_SUFFIX):
        if into_bits:
            raise PlanError(f"the product of two bit matrices is one: write it to a {BIT_SUFFIX} file, not {out}")
        raise PlanError(f"{out}: a product of arrays is written to a .npy file")
    request = replace(exact_request(left, right, ring, max_abs=options.max_abs), device=device.kind)
    if ring.modulus != 2:
        left, right = (x.astype(request.storage, copy=False) for x in (a, b))
    with device.current():
        plan = plan_for(request, scheme, levels, strategy=options.strategy)
        where = "" if device.kind == "cpu" else f" on {device}, transfers included"
        product, told = run_once(plan, partial(_computed, request, left, right), where, device, "Gop/s")
    yield told
    if out is not None:
        if into_bits:
            with writing(out):
                product.save(out)
            yield f"wrote {out}", {"out": out}
        else:
            array = product.to_array("uint8") if ring.modulus == 2 else product
            yield write_product(out, array, array.dtype.name), {"out": out}
    if check:
        yield _checked(request, left, right, product)


def _computed(request: Request, a: Any, b: Any, executor: Any) -> Any:
    """The product on the request's device, as an array or a bit matrix."""
    if request.device == "cpu":
        return executor.run(a, b)
    return to_host(executor.run(*(to_tensor(x) for x in (a, b))), request.n, request)


def _operand(file: str) -> Any:
    if Path(file).suffix == BIT_SUFFIX:
        return BitMatrix.load(file)
    return read_operand(file).matrix


def _checked(request: Request, a: Any, b: Any, product: Any) -> Told:
    wrong = ExactBench().errors(request, a, b)(product)
    line = "check: exact in the rows compared with Python integers" if not wrong else f"check: {wrong:.2%} wrong"
    return line, {"correct": not wrong}
