"""Which library works the products of a request."""

from __future__ import annotations

from ..request import Request
from .blas import Backend, backend_of


def library_for(request: Request) -> Backend:
    """The library that this machine's stored profile found fastest for such products, else numpy's."""
    from .machine import machine_profile

    return backend_of(request.dtype, machine_profile().backend(request.dtype, *request.shape))
