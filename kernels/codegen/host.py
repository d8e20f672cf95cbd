"""What the processor offers the kernels: the width and number of its vector registers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True)
class Host:
    """`vector_bytes` of a register, and how many `registers` there are."""

    vector_bytes: int
    registers: int


@lru_cache(maxsize=1)
def host() -> Host:
    """The processor that numba compiles for: this one, or what NUMBA_CPU_NAME and NUMBA_CPU_FEATURES say.

    What is not known to have wider vectors gets 16 bytes: every target that LLVM knows can work these.
    """
    features = _features()
    if "avx512f" in features:
        return Host(64, 32)
    if "avx" in features:
        return Host(32, 16)
    return Host(16, 32 if "neon" in features else 16)


def has_features(*names: str) -> bool:
    """Whether the processor that numba compiles for has all these features, by LLVM's names."""
    return set(names) <= _features()


@lru_cache(maxsize=1)
def _features() -> set[str]:
    from llvmlite import binding
    from numba.core import config

    chosen: Any = config  # its names are made when it is loaded
    if chosen.CPU_FEATURES is not None:
        return {name[1:] for name in chosen.CPU_FEATURES.split(",") if name.startswith("+")}
    if chosen.CPU_NAME not in (None, binding.get_host_cpu_name()):
        return set()  # another processor's features are not known here
    return {name for name, present in binding.get_host_cpu_features().items() if present}
