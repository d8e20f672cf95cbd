"""The processor's vector registers: their width and number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True)
class Host:
    """The `vector_bytes` of a register, and the number of `registers`."""

    vector_bytes: int
    registers: int


@lru_cache(maxsize=1)
def host() -> Host:
    """Return the processor that numba compiles for: this one, or that of NUMBA_CPU_NAME and NUMBA_CPU_FEATURES.

    A processor not known to have wider vectors gets 16 bytes, which every LLVM target supports.
    """
    features = _features()
    if "avx512f" in features:
        return Host(64, 32)
    if "avx" in features:
        return Host(32, 16)
    return Host(16, 32 if "neon" in features else 16)


def has_features(*names: str) -> bool:
    """Return whether the processor that numba compiles for has all these features, by LLVM's names."""
    return set(names) <= _features()


@lru_cache(maxsize=1)
def _features() -> set[str]:
    from llvmlite import binding
    from numba.core import config

    chosen: Any = config  # numba defines its attributes at import
    if chosen.CPU_FEATURES is not None:
        return {name[1:] for name in chosen.CPU_FEATURES.split(",") if name.startswith("+")}
    if chosen.CPU_NAME not in (None, binding.get_host_cpu_name()):
        return set()  # the features of another processor are unknown here
    return {name for name, present in binding.get_host_cpu_features().items() if present}
