"""The library that computes the products of a request."""

from __future__ import annotations

from ..planning.profile import Profile
from ..request import Request
from .blas import Backend, backend_of


def library_for(request: Request, profile: Profile) -> Backend:
    """The library that a profile found fastest for such products, else numpy's."""
    return backend_of(request.dtype, profile.backend(request.dtype, *request.shape))
