"""The selection of the GEMM library of a request."""

from __future__ import annotations

from ..planning.profile import Profile
from ..request import Request
from .blas import Backend, backend_of


def library_for(request: Request, profile: Profile) -> Backend:
    """Return the library that is fastest for such products by the profile, else numpy."""
    return backend_of(request.dtype, profile.backend(request.dtype, *request.shape))
