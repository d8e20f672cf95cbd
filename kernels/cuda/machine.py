"""The profiles of GPUs: their folder and their ids."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ...errors import PlanError
from ..arrays import torch
from ..planning.machine import Machine
from ..planning.profile import Profile, stored_profile
from ..planning.wisdom import stored_wisdom
from . import estimate
from .cost_model import CudaCostModel

FIRST_CAPABILITY = 7
"""The oldest major capability of GPUs that Triton supports."""


def device_reason(index: int | None = None) -> str | None:
    """Return the reason why no product by schemes runs on a GPU of this machine, or None."""
    try:
        import torch
    except ImportError:
        return "products on a GPU need torch: pip install 'lcma[torch]'"
    if not torch.cuda.is_available():
        return "torch sees no GPU"
    if torch.version.hip is None and torch.cuda.get_device_capability(index)[0] < FIRST_CAPABILITY:
        name = torch.cuda.get_device_name(index)
        return f"{name} is older than what Triton makes code for (capability {FIRST_CAPABILITY}.0)"
    try:
        import triton  # noqa: F401
    except ImportError:
        return "products on a GPU need Triton: pip install 'lcma[torch]' on Linux"
    return None


def require_device(index: int | None = None) -> None:
    """Raise PlanError with the reason of `device_reason`, if any."""
    if reason := device_reason(index):
        raise PlanError(reason)


@lru_cache(maxsize=16)
def versions() -> tuple[tuple[str, str], ...]:
    """Return the properties besides the GPU that rates depend on."""
    import triton

    return (("torch", torch.__version__), ("cuda", str(torch.version.cuda)), ("triton", triton.__version__))


@lru_cache(maxsize=16)
def device_id(index: int) -> str:
    """Return the name of the profile of a GPU of this machine."""
    name = torch.cuda.get_device_name(index)
    digest = hashlib.sha256(repr((name, versions())).encode()).hexdigest()[:12]
    return f"cuda-{name.lower().replace(' ', '-')}-{digest}"


def device_profile(index: int) -> Profile:
    """Return the stored profile of a GPU, else the shipped one of its kind, else an estimate."""
    return stored_profile(device_id(index)) or _unmeasured(index)


@lru_cache(maxsize=16)
def _unmeasured(index: int) -> Profile:
    found = estimate.device_profile(torch.cuda.get_device_name(index), torch.cuda.get_device_properties(index))
    return replace(found, id=device_id(index))  # wisdom belongs to this GPU and these versions


def cuda_machine(index: int | None = None, profile: Profile | None = None) -> Machine:
    """Return GPU number `index` as a planning target; a `profile` replaces its own, a published one completed.

    If no GPU is present, plans are based on the shipped profile of an NVIDIA H200. A GPU that was never measured has
    an estimated profile, by which the vendor's product is chosen until calls have shown a faster one.
    """
    if profile is not None:
        profile = estimate.completed(profile)
    elif device_reason(index) is None:
        profile = device_profile(torch.cuda.current_device() if index is None else index)
    else:
        profile = estimate.h200()
    return Machine("cuda", profile, CudaCostModel(profile), index=index or 0, wisdom=stored_wisdom(profile.id))


def index_of(device: Any) -> int:
    """Return the index of a torch device."""
    return torch.cuda.current_device() if device.index is None else int(device.index)
