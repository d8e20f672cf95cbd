"""Detection of GPUs, with one-line errors if there are none."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

from ....errors import PlanError, unknown_name


class DeviceLostError(PlanError):
    """A GPU that stopped responding during a walk; earlier finds are stored."""


@lru_cache(maxsize=1)
def cuda_module() -> Any:
    """Import and return numba.cuda of the package numba-cuda, patched to work with the installed numpy.

    Raises:
        PlanError: numba-cuda is not installed, or its version does not fit.
    """
    if find_spec("numba_cuda") is None:
        raise PlanError("GPU walks need numba-cuda: pip install 'lcma[cuda]'")
    if not hasattr(np, "row_stack"):
        # numba-cuda 0.30 uses this function, which numpy 2.5 no longer has.
        setattr(np, "row_stack", np.vstack)  # noqa: B010
    try:
        from numba import cuda
        from numba.cuda import extending
        from numba.cuda.core import config
    except Exception as error:  # an incompatible version fails in many ways, AttributeError among them
        raise PlanError(
            f"numba-cuda {version('numba-cuda')} does not fit here: pip install -U 'lcma[cuda]' ({first_line(error)})"
        ) from None
    # Blocks of one warp are intended: the occupancy warnings do not apply.
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    if not hasattr(extending, "intrinsic"):
        raise PlanError(f"numba-cuda {version('numba-cuda')} is too old for GPU walks: pip install -U 'lcma[cuda]'")
    return cuda


def gpus() -> tuple[int, ...]:
    """Return the numbers of the GPUs that walkers can run on.

    Raises:
        PlanError: numba-cuda is absent or unfit, or there is no suitable GPU or no driver.
    """
    cuda = cuda_module()
    try:
        if not cuda.is_available():
            raise PlanError("no NVIDIA GPU is here, or no driver for it: take --device cpu")
        numbers = tuple(gpu.id for gpu in cuda.gpus)
        weak = [n for n in numbers if cuda.gpus[n].compute_capability < (9, 0)]
    except PlanError:
        raise
    except Exception as error:
        raise PlanError(f"the NVIDIA driver does not answer: {first_line(error)}") from None
    if len(weak) == len(numbers):
        raise PlanError("GPU walks need compute capability 9.0 (H100) or newer: take --device cpu")
    return tuple(n for n in numbers if n not in weak)


def chosen_gpus(device: str) -> tuple[int, ...]:
    """Return the numbers of the GPUs of a device name: cuda (the current one), cuda:0,1 or cuda:all.

    Raises:
        PlanError: the name is unknown, or there is no such GPU; see `gpus`.
    """
    match = re.fullmatch(r"cuda(?::(all|\d+(?:,\d+)*))?", device)
    if match is None:
        raise unknown_name("device", device, ("cpu", "cuda", "cuda:0,1", "cuda:all"))
    here = gpus()
    if match.group(1) == "all":
        return here
    if match.group(1) is None:
        current = int(cuda_module().current_context().device.id)
        return (current if current in here else here[0],)
    numbers = tuple(dict.fromkeys(int(number) for number in match.group(1).split(",")))
    if missing := [number for number in numbers if number not in here]:
        raise PlanError(f"there is no GPU {missing[0]} for walkers here; take {', '.join(map(str, here))} or cuda:all")
    return numbers


def one_gpu(device: str) -> int:
    """Return the number of the GPU of a device name, see `chosen_gpus`; raise a PlanError if there are several."""
    numbers = chosen_gpus(device)
    if len(numbers) > 1:
        raise PlanError(f"these walks are on one GPU, not on {len(numbers)}: take --device cuda:{numbers[0]}")
    return numbers[0]


def driver_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions for errors of the driver: that of numba-cuda, and that of cuda.core if available."""
    from numba.cuda.cudadrv.driver import CudaAPIError

    try:
        below: type[Exception] = import_module("cuda.core._utils.cuda_utils").CUDAError
    except (ImportError, AttributeError):
        return (CudaAPIError,)
    return CudaAPIError, below


def first_line(error: Exception) -> str:
    """Return the first line of an error, with its type."""
    return f"{type(error).__name__}: {error}".strip().splitlines()[0][:160]
