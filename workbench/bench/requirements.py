"""What rows need: torch, a measured GPU, a process of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from ...errors import PlanError, VerificationError
from ...kernels.arrays import torch
from ...kernels.cuda import machine
from ...kernels.planning.profile import ESTIMATED
from .case import Options
from .contest import Call


def require_measured_gpu() -> None:
    """Check that there is a GPU with a measured profile.

    Raises:
        PlanError: there is none.
    """
    machine.require_device()
    if machine.device_profile(0).source == ESTIMATED:
        raise PlanError("this GPU was not measured: run lcma doctor --profile --device cuda first")


def seeded_torch(options: Options, measured: bool = False) -> Any:
    """Return torch with the options' seed and strict products; `measured`: a GPU must have a measured profile.

    Raises:
        PlanError: torch is not installed, or there is no such device.
    """
    if find_spec("torch") is None:
        raise PlanError("this suite needs torch: pip install 'lcma[torch]'")
    if options.device == "cuda":
        (require_measured_gpu if measured else machine.require_device)()
    torch.manual_seed(options.seed)
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch


def placed(options: Options, dtype: str) -> tuple[Any, dict[str, Any]]:
    """The torch of `seeded_torch`, and where it makes tensors."""
    torch = seeded_torch(options)
    return torch, {"device": options.device, "dtype": getattr(torch, dtype)}


def in_new_process(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Return what a process of this Python prints; its environment is ours, or another.

    Raises:
        VerificationError: it fails.
    """
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        raise VerificationError(f"{' '.join(arguments)[:80]} ended with {done.returncode}: {last}")
    return done.stdout


def inferred(module: Any, *inputs: Any) -> Call:
    """A call of a module without gradients."""

    def call() -> Any:
        with torch.inference_mode():
            return module(*inputs)

    return call
