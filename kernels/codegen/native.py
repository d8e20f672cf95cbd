"""Machine code of LLVM modules for this processor, by llvmlite, cached on the disk.

A cached file is the code preceded by its hash: one that is damaged counts as missing, as running it could crash.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llvmlite import binding

from ...home import cache_folder, write_atomic
from .host import cpu_name, feature_text

HASH_BYTES = 32

_engines: list[Any] = []
"""The engines that own the loaded code, which is never unloaded."""


def compiled(key: str, module: Callable[[], Any]) -> bytes:
    """Return the code of the module of this key: from the cache, else compiled and stored there, if it can be."""
    target = f"{binding.llvm_version_info} {binding.get_process_triple()} {cpu_name()} {feature_text()}"
    name = hashlib.sha256(f"{target} {key}".encode()).hexdigest()[:24]
    path = cache_folder() / "kernels" / name / "rows.o"
    if (code := stored_code(path)) is not None:
        return code
    code = _compile(str(module()))
    with contextlib.suppress(OSError):  # it is then compiled again by every process
        write_atomic(path, hashlib.sha256(code).digest() + code)
    return code


def stored_code(path: Path) -> bytes | None:
    """Return the code of a cached file; None if it is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    code = content[HASH_BYTES:]
    return code if code and hashlib.sha256(code).digest() == content[:HASH_BYTES] else None


def _machine() -> Any:
    """Return LLVM's target machine for code of this process."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    triple = binding.get_process_triple()
    x86 = triple.startswith(("x86", "i386", "i686"))
    return binding.Target.from_triple(triple).create_target_machine(
        cpu=cpu_name(),
        features=feature_text(),
        opt=3,
        reloc="static" if x86 else "default",
        codemodel="jitdefault",
        jit=True,
    )


def _compile(text: str) -> bytes:
    """Optimise and compile a module: the code is written as it should run, so that few passes are needed."""
    machine = _machine()
    module = binding.parse_assembly(text)
    options = binding.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    passes = binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    return bytes(machine.emit_object(module))


def loaded(code: bytes, name: str, kinds: tuple[Any, ...]) -> Any:
    """Load code into this process and return its function `name`, which takes these ctypes and returns nothing.

    A call releases the GIL.
    """
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine())
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address(name))
