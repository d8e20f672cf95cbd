"""The options of the commands that plan, time, tune or run one product, and the requests that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from ..errors import PlanError
from ..kernels import Request
from ..kernels.factored import extra_bytes_for, factored_request, product_dtype
from ..kernels.kronecker import FactoredMatrix
from ..kernels.ring import ExactRing, exact_ring
from ..kernels.structured.matrix import is_operand_file, load
from .kronecker import LAYOUT
from .matrix_files import DTYPES
from .options import Choice, Meaning, option
from .output import visible
from .products import CAUSAL, DEVICE, DTYPE, Device, Sizes, causal_name, sized_request

MAX_ABS = 1 << 20
"""The magnitude of random entries over Z where none is stated."""


def ring_of(text: str) -> ExactRing:
    """The ring of an exact product."""
    try:
        return exact_ring(text)
    except PlanError as error:
        raise click.BadParameter(visible(str(error))) from None


RING = Meaning("Z|Z2|GF(p)|Z/n", ring_of)


def exact_request_of(
    sizes: tuple[int, int, int], ring: ExactRing, device: Device, batch: tuple[int, ...] = ()
) -> Request:
    """The request of an exact product of random matrices; over Z their entries are below MAX_ABS in magnitude."""
    dtype = "bit" if ring.modulus == 2 else "int64"
    most = None if ring.modulus else MAX_ABS
    return Request(*sizes, dtype, batch, batch, device.kind, ring=ring, max_abs=most)


@dataclass(frozen=True)
class ProductOptions:
    """A product as the options describe it; `strategy` and `batch` are None for commands that lack the option."""

    device: Device = option(default="cpu", type=DEVICE)
    dtype: str | None = option(type=Choice(DTYPES))
    causal: str | None = option(type=CAUSAL)
    max_abs: int | None = option(type=click.IntRange(0))
    ring: ExactRing | None = option(type=RING)
    layout: str | None = option(type=LAYOUT)
    max_extra_bytes: int = option(type=click.IntRange(0), default=0, metavar="BYTES", show_default=False)
    batch: int | None = option(type=click.IntRange(1, 1 << 24))
    strategy: str | None = option(metavar="NAME[:METHOD]")

    def factored(self, arguments: Sequence[str], **others: object) -> FactoredMatrix | None:
        """The matrix of the one file that the arguments name; None where they name none.

        `others` are options of the command, by name, that such a product does not have.

        Raises:
            UsageError: there is an option that is only for the other kind of product.
            SchemeFormatError: the file holds the header of such a matrix, but no matrix.
        """
        matrix = load(arguments[0]) if len(arguments) == 1 and is_operand_file(arguments[0]) else None
        if matrix is not None:
            reject("K", causal=self.causal, ring=self.ring, max_abs=self.max_abs, **others)
        elif self.layout is not None or self.max_extra_bytes:
            option = "--layout" if self.layout is not None else "--max-extra-bytes"
            raise click.UsageError(f"{option} is for a file with a factored matrix")
        return matrix

    def request_by(self, matrix: FactoredMatrix) -> Request:
        """The request for a product by a factored matrix; without --dtype in the one that `lcma run` computes in.

        A line on stderr tells where that is not the one of the stored factors.

        Raises:
            UsageError: the batch is not given.
            PlanError: there is no such dtype on the device.
        """
        if self.batch is None:
            raise click.UsageError("a product by a stored matrix needs --batch N, the number of its inputs")
        own, kind = self.dtype or product_dtype(matrix.dtype, self.device.kind), self.device.kind
        extra = max(self.max_extra_bytes, extra_bytes_for(self.strategy))
        layout = self.layout or "bsf"
        found = factored_request(matrix.structure, self.batch, own, layout, device=kind, max_extra_bytes=extra)
        if self.dtype is None and own != matrix.dtype:
            click.echo(f"the factors are stored in {matrix.dtype}; a processor computes in {own}", err=True)
        return found

    def request(
        self, sizes: Sizes, dtype: str | None = None, causal: str | None = None, max_error: float | None = None
    ) -> Request:
        """The request for a product of random matrices; `dtype` and `causal` come before the options.

        Raises:
            UsageError: --ring beside options of other products.
            PlanError: the device has no such dtype, or the triangular matrix is not square.
        """
        dtype, causal = dtype or self.dtype, causal or self.causal
        batch = () if self.batch is None else (self.batch,)
        if self.ring is not None:
            reject("--ring", causal=causal, dtype=dtype, max_abs=self.max_abs, max_error=max_error)
            return exact_request_of(sizes, self.ring, self.device, batch)
        name = causal_name(causal)
        return sized_request(sizes, dtype or DTYPE, self.device, name, batch, max_error=max_error, max_abs=self.max_abs)


def reject(what: str, **given: object) -> None:
    """Check that options that `what` has no use for are not given: they are None or False.

    Raises:
        UsageError: one is given.
    """
    names = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is not None and value is not False]
    if names:
        raise click.UsageError(f"{what} takes no {' or '.join(names)}")
