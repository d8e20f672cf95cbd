"""The profiles of GPUs: where they are kept, and what they are known by."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import LcmaError, PlanError
from ..cpu.machine import profiles_folder, read_profile
from ..planning.profile import Profile

FIRST_CAPABILITY = 7
"""The oldest major capability of GPUs that Triton makes code for."""


def device_reason(index: int | None = None) -> str | None:
    """Why no product by schemes runs on a GPU of this machine, or None."""
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
    """Raises PlanError where `device_reason` knows one."""
    if reason := device_reason(index):
        raise PlanError(reason)


@lru_cache(maxsize=16)
def versions() -> tuple[tuple[str, str], ...]:
    """What rates depend on beside the GPU."""
    import torch
    import triton

    return (("torch", torch.__version__), ("cuda", str(torch.version.cuda)), ("triton", triton.__version__))


@lru_cache(maxsize=16)
def device_id(index: int) -> str:
    """The name of the profile of a GPU of this machine."""
    import torch

    name = torch.cuda.get_device_name(index)
    digest = hashlib.sha256(repr((name, versions())).encode()).hexdigest()[:12]
    return f"cuda-{name.lower().replace(' ', '-')}-{digest}"


def device_profile(index: int) -> Profile | None:
    """The stored profile of a GPU; None before it was measured, or where the file is damaged."""
    return _stored(profiles_folder(), device_id(index))


@lru_cache(maxsize=16)
def _stored(folder: Path, name: str) -> Profile | None:
    try:
        return read_profile(folder / f"{name}.json")
    except (LcmaError, OSError):
        return None


def forget() -> None:
    """Have profiles read anew, after one was written."""
    _stored.cache_clear()


def index_of(device: Any) -> int:
    """The number of a torch device."""
    import torch

    return torch.cuda.current_device() if device.index is None else int(device.index)
