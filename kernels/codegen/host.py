"""The processor's vector registers: their width and number."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache


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
def cpu_name() -> str:
    """Return LLVM's name of the processor that code is compiled for."""
    from llvmlite import binding

    return os.environ.get("NUMBA_CPU_NAME") or str(binding.get_host_cpu_name())


@lru_cache(maxsize=1)
def feature_text() -> str:
    """Return the features of that processor, such as "+avx2,-sse4a"."""
    from llvmlite import binding

    if (chosen := os.environ.get("NUMBA_CPU_FEATURES")) is not None:
        return chosen
    if cpu_name() != binding.get_host_cpu_name():
        return ""  # the features of another processor are unknown here
    return str(binding.get_host_cpu_features().flatten())


def _features() -> set[str]:
    return {name[1:] for name in feature_text().split(",") if name.startswith("+")}
