"""Exact products that commands are asked about: rings and requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..errors import PlanError
from .options import Meaning
from .output import visible
from .products import Device

if TYPE_CHECKING:
    from ..kernels import Request
    from ..kernels.ring import ExactRing

MAX_ABS = 1 << 20
"""The magnitude of random entries over Z where none is stated."""


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
