"""Compilation of kernels in advance, in parallel, into the cache where their launches look them up.

The kernels of a call are determined by running it on tensors without data (torch's meta device): it follows
the same path as a real call, and at its end Triton specialises the kernel as for a launch. That is
recorded, and compiled by separate processes.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import PriorityQueue
from typing import Any

from ...errors import LcmaError
from ...schemes_db.display import line

Progress = Callable[[int, int], None]
"""Callback with the number of compiled kernels, and of those known so far."""

EACH = 1 << 30
"""Upper bound of a process's memory in bytes: for 343 products the compiler uses a third of it."""

_recording = threading.Lock()


@dataclass(frozen=True)
class Kernel:
    """One kernel as a launch requests it from Triton.

    `text` is that of its module, `asked` what Triton recorded: types, constants, arguments divisible by
    16, warps and stages.
    """

    module: str
    generated: bool
    text: str
    name: str
    asked: str


@dataclass(frozen=True)
class PrecompileReport:
    """The result of `compile_ahead`: the number of kernels missing from the cache, and the reasons of failures."""

    kernels: int
    failed: tuple[str, ...]

    def __repr__(self) -> str:
        return line(f"{self.kernels} kernels compiled, {len(self.failed)} failed: {', '.join(self.failed)}")


def kernels_of(calls: Iterable[Callable[[], object]]) -> list[Kernel]:
    """Return the kernels that calls on tensors without data launch and that Triton's cache lacks, each once."""
    found: dict[Kernel, None] = {}
    _record_kernels(calls, lambda kernel: found.setdefault(kernel, None))
    return list(found)


def compile_ahead(
    calls: Iterable[Callable[[], object]], progress: Progress = lambda done, kernels: None, processes: int | None = None
) -> PrecompileReport:
    """Compile the kernels that calls on tensors without data launch, by one process per processor, or `processes`.

    They start as soon as a kernel is known, with the longest one first.
    Kernels that cannot be compiled, or crash the process, are reported by a warning and left to their launch.
    """
    waiting: PriorityQueue[tuple[int, int, Kernel]] = PriorityQueue()
    known: set[Kernel] = set()
    failed: list[str] = []
    idle: list[subprocess.Popen[str]] = []
    ended: list[Future[None]] = []
    done, lock = 0, threading.Lock()

    def found(kernel: Kernel) -> None:
        if kernel not in known:
            known.add(kernel)
            waiting.put((-len(kernel.text), len(known), kernel))
            ended.append(threads.submit(compile_longest))

    def compile_longest() -> None:
        nonlocal done
        _, _, kernel = waiting.get_nowait()  # there is one for every call
        with lock:
            process = idle.pop() if idle else None
        process = process or _started()
        if reason := _compiled(process, kernel):
            failed.append(f"{kernel.module}.{kernel.name}: {reason}")
        with lock:
            done += 1
            if process.returncode is None:
                idle.append(process)
            progress(done, len(known))

    with ThreadPoolExecutor(processes or _most_processes()) as threads:
        try:
            _record_kernels(calls, found)
            for each in ended:
                each.result()
        finally:
            threads.shutdown(cancel_futures=True)
            for process in idle:
                process.communicate()
    if failed:
        warnings.warn(f"{len(failed)} kernels are left to their launches; {failed[0]}", stacklevel=2)
    return PrecompileReport(len(known), tuple(failed))


def _record_kernels(calls: Iterable[Callable[[], object]], keep: Callable[[Kernel], object]) -> None:
    """Record the kernels that calls of this thread compile without a launch; other threads are not affected.

    Calls that cannot be planned are skipped: running them gives the reason.
    """
    try:
        from triton import knobs
    except ImportError:
        return  # nothing is launched without Triton
    thread = threading.get_ident()

    def hook(**asked: Any) -> bool | None:
        if threading.get_ident() != thread or not asked["is_manual_warmup"]:
            return before(**asked) if before else None
        if not _is_kept(asked["fn"].jit_function, asked["compile"]):
            function, module = asked["fn"], sys.modules[asked["fn"].module]
            text = Path(str(module.__file__)).read_text(encoding="utf-8")
            generated = module.__spec__ is None  # it cannot be imported by its name
            keep(Kernel(function.module, generated, text, function.name, asked["compile"]["specialization_data"]))
        return True  # nothing is compiled now

    with _recording:
        before = knobs.runtime.jit_cache_hook
        knobs.runtime.jit_cache_hook = hook
        try:
            for call in calls:
                with suppress(LcmaError):
                    call()
        finally:
            knobs.runtime.jit_cache_hook = before


def _is_kept(function: Any, asked: dict[str, Any]) -> bool:
    """Return whether Triton's cache has the kernel, looked up as `triton.compile` does."""
    from triton._C.libtriton import get_cache_invalidating_env_vars
    from triton.compiler import ASTSource, make_backend
    from triton.runtime.cache import get_cache_key, get_cache_manager

    backend = make_backend(target())
    options = json.loads(asked["specialization_data"])["options"]
    # JSON has no tuples, and the text of options is part of the key.
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    source = ASTSource(function, asked["signature"], asked["constants"], asked["configs"][0])
    key = get_cache_key(source, backend, backend.parse_options(options), env_vars=get_cache_invalidating_env_vars())
    kept = get_cache_manager(hashlib.sha256(key.encode()).hexdigest())
    return bool(kept.get_group(f"{source.name[:150]}.json"))


def target() -> Any:
    """Return Triton's current target: backend, architecture and warp size."""
    from triton.runtime.driver import driver

    return driver.active.get_current_target()


def _most_processes() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(cores, memory // 2 // EACH))


def _compiled(process: subprocess.Popen[str], kernel: Kernel) -> str:
    """Compile a kernel in a process, and return the reason why that failed, or ""; a process that crashed has ended."""
    assert process.stdout is not None
    message = [kernel.module, kernel.text if kernel.generated else None, kernel.name, kernel.asked]
    if answer := process.stdout.readline() if _send(process, message) else "":
        return str(json.loads(answer))
    process.communicate()
    return f"the compiler ended with {process.returncode}"


def _started() -> subprocess.Popen[str]:
    where = target()
    # The child must find the modules of this process, and no others in its working directory.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", f"{__package__}.precompile_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    _send(process, [where.backend, where.arch, where.warp_size])
    return process


def _send(process: subprocess.Popen[str], message: list[Any]) -> bool:
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return False
    return True
