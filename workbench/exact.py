"""Exact products that commands are asked about: rings, requests, operands in files, and one run of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import PlanError
from .destination import writing
from .matrix_files import Operand, read_operand, write_product
from .options import Meaning
from .output import visible
from .products import Device, Told, run_once

if TYPE_CHECKING:
    from ..kernels import Request
    from ..kernels.ring import ExactRing
    from .product_options import ProductOptions

MAX_ABS = 1 << 20
"""The magnitude of random entries over Z where none is stated."""

BIT_SUFFIX = ".npz"


def ring_of(text: str) -> ExactRing:
    """The ring of an exact product."""
    from ..kernels.ring import exact_ring

    try:
        return exact_ring(text)
    except PlanError as error:
        raise click.BadParameter(visible(str(error))) from None


RING = Meaning("Z|Z2|GF(p)|Z/n", ring_of)


def exact_request_of(
    sizes: tuple[int, int, int], ring: ExactRing, device: Device, batch: tuple[int, ...] = ()
) -> Request:
    """The request of an exact product of random matrices; over Z their entries are below MAX_ABS in magnitude."""
    from ..kernels import Request

    dtype = "bit" if ring.modulus == 2 else "int64"
    most = None if ring.modulus else MAX_ABS
    return Request(*sizes, dtype, batch, batch, device.kind, ring=ring, max_abs=most)


def run_exact(
    scheme: Any, files: tuple[str, str], options: ProductOptions, levels: int | None, out: str | None, check: bool
) -> Iterator[Told]:
    """Multiply two files and write the product; yields lines with the facts that each tells.

    Raises:
        PlanError, SchemeFormatError: the operands cannot be read or do not fit.
    """
    from ..kernels import plan_for
    from ..kernels.exact.bits import BitMatrix
    from ..kernels.products.exact import bit_operand, exact_request

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
    _check_out(out, bits and ring.modulus == 2)
    request = replace(exact_request(left, right, ring, max_abs=options.max_abs), device=device.kind)
    if ring.modulus != 2:
        left, right = (x.astype(request.storage, copy=False) for x in (a, b))
    with device.current():
        plan = plan_for(request, scheme, levels, strategy=options.strategy)
        where = "" if device.kind == "cpu" else f" on {device}, transfers included"
        product, told = run_once(plan, partial(_computed, request, left, right), where, device, "Gop/s")
    yield told
    if out is not None:
        if ring.modulus == 2 and bits:
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
    from ..kernels.exact.tensor_bench import to_host, to_tensor

    return to_host(executor.run(*(to_tensor(x) for x in (a, b))), request.n, request)


def _operand(file: str) -> Any:
    from ..kernels.exact.bits import BitMatrix

    if Path(file).suffix == BIT_SUFFIX:
        return BitMatrix.load(file)
    operand: Operand = read_operand(file)
    return operand.matrix


def _check_out(out: str | None, bits: bool) -> None:
    if out is None:
        return
    if bits and Path(out).suffix != BIT_SUFFIX:
        raise PlanError(f"the product of two bit matrices is one: write it to a {BIT_SUFFIX} file, not {out}")
    if not bits and Path(out).suffix == BIT_SUFFIX:
        raise PlanError(f"{out}: a product of arrays is written to a .npy file")


def _checked(request: Request, a: Any, b: Any, product: Any) -> Told:
    from ..kernels.exact.bench import ExactBench

    wrong = ExactBench().errors(request, a, b)(product)
    line = "check: exact in the rows compared with Python integers" if not wrong else f"check: {wrong:.2%} wrong"
    return line, {"correct": not wrong}
