"""Disk cache of compiled kernels by form, compute capability, versions and code: a second process compiles nothing.

An entry that can't be read, or that this numba-cuda can't load, counts as missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections import Counter
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ....home import cache_folder, writable, write_atomic
from .layout import Form

SCHEMA = 1

KERNELS: Counter[str] = Counter()
"""Number of kernels that this process loaded from the disk, compiled and stored, or compiled and could not store."""

_FACTS = ("cooperative", "name", "shared_memory_carveout")
_LIBRARY = ("name", "entry_name", "max_registers", "needs_cudadevrt", "use_cooperative", "lto")


@lru_cache(maxsize=1)
def code_hash() -> str:
    """Return the sha256 of everything that a kernel depends on: the sources of this folder, the compiler's versions."""
    digest = hashlib.sha256(f"{SCHEMA} {version('numba')} {version('numba-cuda')}\0".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class KernelCache:
    """The cache of one kernel, replacing numba-cuda's own, which does not support closures of closures.

    numba-cuda calls `load_overload` before it compiles, and `save_overload` after.
    """

    def __init__(self, form: Form, cost: str, folder: Path | None = None) -> None:
        self._name = f"{form!r} {cost}"
        self._folder = folder or writable(cache_folder() / "cuda")

    def _path(self, signature: Any, capability: tuple[int, int]) -> Path:
        key = f"{self._name}\0{signature}\0{tuple(capability)}\0{code_hash()}"
        return self._folder / f"walk-{hashlib.sha256(key.encode()).hexdigest()[:24]}.npz"

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the kernel for a signature and the current device, or None."""
        with contextlib.suppress(Exception):  # a damaged entry or another numba-cuda can raise anything: compile
            kernel = self._load(signature, _capability())
            KERNELS["from the disk"] += 1
            return kernel
        return None

    def save_overload(self, signature: Any, kernel: Any) -> None:
        """Store a kernel that was compiled for the current device."""
        kept = False
        with contextlib.suppress(Exception):  # a full disk, or another numba-cuda: the next process compiles again
            kept = self._save(signature, _capability(), kernel)
        KERNELS["compiled" if kept else "compiled and not kept"] += 1

    def _load(self, signature: Any, capability: tuple[int, int]) -> Any:
        # Modules of numba-cuda, which exist under numba's name only if it is installed.
        names = ("codegen", "core.sigutils", "cudadrv.driver", "dispatcher", "typing", "types")
        code, core, driver, dispatcher, typing, types = (import_module(f"numba.cuda.{name}") for name in names)
        with np.load(self._path(signature, capability), allow_pickle=False) as archive:
            facts, cubin = json.loads(str(archive["facts"])), archive["cubin"].tobytes()
        architecture = tuple(facts["architecture"])
        arguments, _ = core.normalize_signature(signature)
        library = code.CUDACodeLibrary._rebuild(
            codegen=None,
            llvm_strs=[],
            ptx_cache={},
            cubin_cache={architecture: driver.ObjectCode.from_cubin(cubin, name=facts["library"]["name"])},
            linkerinfo_cache={architecture: ""},
            nvvm_options={},
            nrt=False,
            **facts["library"],
        )
        return dispatcher._Kernel._rebuild(
            signature=typing.signature(types.void, *arguments),
            codelibrary=library,
            debug=False,
            lineinfo=False,
            call_helper=None,
            extensions=[],
            **facts["kernel"],
        )

    def _save(self, signature: Any, capability: tuple[int, int], kernel: Any) -> bool:
        """Store the kernel if possible; return whether it was."""
        states = kernel._reduce_states()
        library = states["codelibrary"]._reduce_states()
        if library["nrt"] or kernel.launch_config_sensitive:
            return False
        # Compiled for one card, under the name of its architecture: (9, 0, "a") where the capability is (9, 0).
        ((architecture, cubin),) = library["cubin_cache"].items()
        facts = {
            "architecture": architecture,
            "kernel": {name: states[name] for name in _FACTS},
            "library": {name: library[name] for name in _LIBRARY},
        }
        code = bytes(getattr(cubin, "code", cubin))  # wrapped or not, depending on the version of numba-cuda
        stream = io.BytesIO()
        np.savez(stream, facts=np.array(json.dumps(facts)), cubin=np.frombuffer(code, dtype=np.uint8))
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomic(self._path(signature, capability), stream.getvalue())
        return True


def _capability() -> tuple[int, int]:
    from numba import cuda

    return tuple(cuda.get_current_device().compute_capability)
