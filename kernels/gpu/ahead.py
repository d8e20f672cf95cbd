"""Kernels compiled before they are needed, side by side, into the cache where their launches look for them.

What a call launches is learnt by making it on tensors without data (torch's meta device): it takes
the very way of a real call, and at its end Triton specialises the kernel as for a launch. That is
recorded, and compiled by processes of their own.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from ...errors import PlanError

Progress = Callable[[int, int], None]
"""Takes how many kernels are done, and how many there are."""

EACH = 1 << 30
"""Bytes that a process may come to: the compiler takes about half of it for 343 products."""

_recording = threading.Lock()


@dataclass(frozen=True)
class Kernel:
    """One kernel as a launch asks Triton for it.

    `text` is that of its module, `asked` what Triton recorded: types, constants, what is divisible by
    16, warps and stages.
    """

    module: str
    generated: bool
    text: str
    name: str
    asked: str

    @property
    def message(self) -> list[str | None]:
        """What `ahead_worker.compile_kernel` takes: an imported module's text is where it is imported from."""
        return [self.module, self.text if self.generated else None, self.name, self.asked]


@dataclass(frozen=True)
class Ahead:
    """What `compile_ahead` found to do: kernels that were not in the cache, and why some still are not."""

    kernels: int
    failed: tuple[str, ...]


def kernels_of(calls: Iterable[Callable[[], object]]) -> list[Kernel]:
    """The kernels that calls on tensors without data ask for and that Triton's cache has not, each once.

    A call that cannot be planned adds those up to there: what runs it will say so itself.
    """
    found: dict[Kernel, None] = {}
    with _recorded(lambda kernel: found.setdefault(kernel, None)):
        for call in calls:
            try:
                call()
            except PlanError:
                continue
    return list(found)


def compile_ahead(
    calls: Iterable[Callable[[], object]],
    progress: Progress = lambda done, kernels: None,
    processes: int | None = None,
) -> Ahead:
    """Compile what calls on tensors without data ask for, those that take longest first.

    By as many processes as there are processors, or `processes`. What cannot be compiled, or ends the
    process that tries, is said in a warning and left to its launch.
    """
    kernels = sorted(kernels_of(calls), key=lambda kernel: -len(kernel.text))
    if not kernels:
        return Ahead(0, ())
    waiting: SimpleQueue[Kernel] = SimpleQueue()
    for kernel in kernels:
        waiting.put(kernel)
    failed: list[str] = []
    count, done = min(processes or _most_processes(), len(kernels)), 0
    lock = threading.Lock()

    def finished(kernel: Kernel, reason: str) -> None:
        nonlocal done
        with lock:
            done += 1
            if reason:
                failed.append(f"{kernel.module}.{kernel.name}: {reason}")
            progress(done, len(kernels))

    progress(0, len(kernels))
    with ThreadPoolExecutor(count) as threads:
        for ended in [threads.submit(_work, waiting, finished) for _ in range(count)]:
            ended.result()
    if failed:
        warnings.warn(f"{len(failed)} kernels are left to their launches; {failed[0]}", stacklevel=2)
    return Ahead(len(kernels), tuple(failed))


@contextmanager
def _recorded(keep: Callable[[Kernel], object]) -> Iterator[None]:
    """What this thread asks Triton to compile without a launch is kept instead; other threads are not touched."""
    try:
        from triton import knobs  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        yield  # nothing is launched without Triton
        return
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
            yield
        finally:
            knobs.runtime.jit_cache_hook = before


def _is_kept(function: Any, asked: dict[str, Any]) -> bool:
    """Whether Triton's cache has it; as `triton.compile` looks there."""
    from triton._C.libtriton import (  # type: ignore[import-untyped, unused-ignore]
        get_cache_invalidating_env_vars,
    )
    from triton.compiler import ASTSource, make_backend  # type: ignore[import-untyped, unused-ignore]
    from triton.runtime.cache import get_cache_key, get_cache_manager  # type: ignore[import-untyped, unused-ignore]

    backend = make_backend(_target())
    options = backend.parse_options(json.loads(asked["specialization_data"])["options"])
    source = ASTSource(function, asked["signature"], asked["constants"], asked["configs"][0])
    key = get_cache_key(source, backend, options, env_vars=get_cache_invalidating_env_vars())
    kept = get_cache_manager(hashlib.sha256(key.encode()).hexdigest())
    return bool(kept.get_group(f"{source.name[:150]}.json"))


def _target() -> Any:
    from triton.runtime.driver import driver  # type: ignore[import-untyped, unused-ignore]

    return driver.active.get_current_target()


def _most_processes() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(cores, memory // 2 // EACH))


def _work(waiting: SimpleQueue[Kernel], finished: Callable[[Kernel, str], None]) -> None:
    """Have one process after the other compile what waits: a new one where the last has died."""
    while True:
        process = _started()
        try:
            while True:
                try:
                    kernel = waiting.get_nowait()
                except Empty:
                    return
                reason = _answer(process, kernel.message)
                finished(kernel, f"the compiler ended with {process.wait()}" if reason is None else reason)
                if reason is None:
                    break
        finally:
            process.communicate()


def _started() -> subprocess.Popen[str]:
    target = _target()
    # The child finds the modules that this process found; it must not find others in the folder it is started in.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", f"{__package__}.ahead_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    _send(process, [target.backend, target.arch, target.warp_size])
    return process


def _answer(process: subprocess.Popen[str], message: list[Any]) -> str | None:
    """What the process answers: "" or what went wrong; None where it has ended."""
    assert process.stdout is not None
    if not _send(process, message):
        return None
    line = process.stdout.readline()
    return str(json.loads(line)) if line else None


def _send(process: subprocess.Popen[str], message: list[Any]) -> bool:
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return False
    return True
