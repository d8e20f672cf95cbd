"""`lcma run`"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import click

from ...errors import PlanError
from ...kernels import Request, plan_for
from ...kernels.cuda.requests import request_of
from ...kernels.precision import arithmetic_of
from ...kernels.request import PLAIN, structures_of
from ...schemes_db.symmetry import ATTENTION_PRODUCTS
from ..contenders import max_error, relative_error, true_product
from ..destination import claim
from ..help import lcma_command
from ..matrix_files import Operand, as_numpy, check_destination, file_of, read_operand, to_gpu, write_product
from ..options import argument, group, option
from ..output import tell
from ..product_options import ProductOptions, reject
from ..products import FACTORS, Device, Told, causal_name, run_once
from ..runs import run_exact, run_product
from ..schemes import AUTO, planned_scheme


@lcma_command("run", json="the result")
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
    """Multiply the matrices of two files by a certified scheme, or by the fastest plan.

    A, B and C are .npy files, or tensors of .safetensors files as FILE:TENSOR; they are memory-mapped, and
    leading dimensions are a batch. SCHEME may be SCHEME/SCHEME, one a level. A scheme for a triangular or
    masked target reads or writes the triangle that its target names.

    K X multiplies X by a factored matrix: Y = X K^T for X (batch, features), Y = K X with --layout bsl. K is a .npz or
    .safetensors file that lcma.kronecker.save wrote (the tensors patterns (L, 4) and factor1 ... factorL, each
    (a, d, b, c)), or lcma.block_low_rank.save (a low-rank, Monarch or BLAST matrix).

    With --ring the product is exact: of .npy files of integers, or over Z2 also of bit matrices as
    `lcma.BitMatrix.save` writes them. Over Z a product that could exceed int64 is refused.

    With --causal the files hold what the formula names, and what stands above a triangle is not used:
    qk: S = Q K^T, pv: O = P V, dv: dV = P^T dO, dp: dP = dO V^T, dq: dQ = dS K, dk: dK = dS^T Q.
    """
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
