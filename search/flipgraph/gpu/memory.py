"""Memory of the walkers of a fleet: in this process, or on a GPU. Both run the same launches."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ....schemes_db.factor import IntArray
from .device import DeviceLostError, cuda_module, driver_errors, first_line
from .kernel import COUNTERS, make_kernel, twin
from .kernel_cache import KernelCache
from .layout import Form, Words

Array = npt.NDArray[Any]
Answer = TypeVar("Answer")

KEPT = ("state", "best", "score", "counters", "draws")
"""The arrays that a checkpoint stores, with one row a walker."""

PASSED = ("state", "pool", "best", "score", "flips", "counters", "draws", "origin", "goals", "halves", "accept")
"""The array arguments of a launch, in the order of its parameters."""


class HostMemory:
    """The twin: walkers run sequentially on the processor.

    Attributes:
        walkers: number of walkers.
    """

    def __init__(self, form: Form, cost: str, walkers: int) -> None:
        self.walkers, self._form = walkers, form
        self._run = twin(form, cost)
        self._arrays: dict[str, Array] = {}
        self._fast = np.zeros(form.fast * form.threads, dtype=np.uint32)

    def allocate(self, draws: npt.NDArray[np.uint64], halves: Array, thresholds: Array) -> None:
        """Allocate the walkers, one for each random state in `draws`: each starts from entry 0 of the pool."""
        self.walkers = count = len(draws)
        arrays: dict[str, Array] = {
            "state": np.zeros(count * self._form.words, dtype=np.uint32),
            "best": np.zeros(count * self._form.words, dtype=np.uint32),
            "score": np.zeros(count, dtype=np.int32),
            "flips": np.zeros(count, dtype=np.uint32),
            "counters": np.zeros((count, COUNTERS), dtype=np.int64),
            "draws": draws,
            "origin": np.zeros(count, dtype=np.int32),
            "goals": np.zeros(count, dtype=np.int32),
            "halves": halves,
            "accept": thresholds,
        }
        for name, array in arrays.items():
            self.put(name, array)

    def put(self, name: str, array: Array) -> None:
        """Replace an array."""
        self._arrays[name] = np.ascontiguousarray(array).copy()

    def get(self, name: str) -> Array:
        """Return a copy of an array."""
        return self._arrays[name].copy()

    def row(self, name: str, walker: int) -> Words:
        """Return one walker's words of "state" or "best"."""
        return self._arrays[name][walker * self._form.words :][: self._form.words].copy()

    def start(self, numbers: IntArray, steps: int) -> None:
        """Start a launch."""
        self._run(self._fast, self.walkers, (*(self._arrays[name] for name in PASSED), numbers), steps)

    def finish(self) -> None:
        """Wait for the end of the launch."""


def shared_blocks(form: Form, device: Any) -> int:
    """Return how many blocks a multiprocessor's shared memory holds, at most 32; the system takes 1 KiB of each."""
    return min(32, int(device.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) // (4 * form.fast * form.threads + 1024))


def bounds_of(form: Form, device: Any) -> tuple[int, int] | None:
    """Return the threads of a block and the resident blocks that a kernel is compiled for; None leaves both open.

    Where shared memory holds few blocks, more registers cost nothing. Without bounds the compiler saves some: with 72
    registers in place of 96 the walk of 4x5x5 has 0.92 of its rate (one H200).
    """
    blocks = max(1, shared_blocks(form, device))
    registers = device.MAX_REGISTERS_PER_MULTIPROCESSOR // (blocks * 32)  # a block is one warp, whole or not
    return (form.threads, blocks) if registers >= 96 else None  # with fewer some walks would spill


@lru_cache(maxsize=32)
def compiled_kernel(form: Form, cost: str, bounds: tuple[int, int] | None = None) -> Any:
    """Return the kernel of a form; numba.cuda compiles it at its first launch, or loads it from the disk."""
    kernel = cuda_module().jit(make_kernel(form, cost), launch_bounds=bounds)
    kernel._cache = KernelCache(form, cost)
    return kernel


class GpuMemory(HostMemory):
    """Walkers on a GPU; without a number, the most that are resident at once.

    Raises:
        PlanError: numba-cuda is absent or unfit.
        DeviceLostError: the GPU does not respond.
    """

    def __init__(self, form: Form, cost: str, walkers: int | None = None, gpu: int = 0) -> None:
        self._cuda, self._form, self._gpu = cuda_module(), form, gpu
        bounds = self._on_gpu(lambda: bounds_of(form, self._cuda.get_current_device()))
        self._kernel = compiled_kernel(form, cost, bounds)
        self._arrays: dict[str, Any] = {}
        self._shared = 4 * form.fast * form.threads
        self.resources = self._measured()
        blocks = self.resources["blocks_per_multiprocessor"] * self.resources["multiprocessors"]
        # A second wave of blocks would leave the GPU almost idle.
        self.walkers = walkers or blocks * form.threads

    def _measured(self) -> dict[str, int]:
        """Return registers, local and shared bytes, and the number of resident blocks; compiles the kernel."""
        form = self._form
        self.allocate(np.ones(1, dtype=np.uint64), np.zeros(6, dtype=np.uint64), np.zeros(16, dtype=np.uint32))
        self.put("pool", np.zeros(form.words, dtype=np.uint32))
        self.start(np.zeros(7, dtype=np.int64), 0)
        self.finish()

        def look() -> dict[str, int]:
            device = self._cuda.get_current_device()
            kernel = next(iter(self._kernel.overloads.values()))
            registers = -(-kernel.regs_per_thread // 8) * 8 * 32
            blocks = min(shared_blocks(form, device), device.MAX_REGISTERS_PER_MULTIPROCESSOR // registers)
            return {
                "registers": int(kernel.regs_per_thread),
                "local_bytes": int(kernel.local_mem_per_thread),
                "shared_bytes": self._shared,
                "blocks_per_multiprocessor": int(blocks),
                "multiprocessors": int(device.MULTIPROCESSOR_COUNT),
            }

        return self._on_gpu(look)

    def put(self, name: str, array: Array) -> None:
        def copy() -> None:
            held = self._arrays.get(name)
            if held is not None and held.shape == array.shape and held.dtype == array.dtype:
                held.copy_to_device(np.ascontiguousarray(array))
            else:
                self._arrays[name] = self._cuda.to_device(np.ascontiguousarray(array))

        self._on_gpu(copy)

    def get(self, name: str) -> Array:
        return self._on_gpu(lambda: self._arrays[name].copy_to_host())

    def row(self, name: str, walker: int) -> Words:
        words = self._form.words
        return self._on_gpu(lambda: self._arrays[name][walker * words : (walker + 1) * words].copy_to_host())

    def start(self, numbers: IntArray, steps: int) -> None:
        self.put("policy", numbers)
        a, threads = self._arrays, self._form.threads

        def launch() -> None:
            kernel = self._kernel[-(-self.walkers // threads), threads, 0, self._shared]
            kernel(self.walkers, *(a[name] for name in PASSED), a["policy"], steps)

        self._on_gpu(launch)

    def finish(self) -> None:
        self._on_gpu(self._cuda.synchronize)

    def _on_gpu(self, work: Callable[[], Answer]) -> Answer:
        """Call a function in the GPU's context.

        Raises:
            DeviceLostError: the driver reports an error.
        """
        gpu: AbstractContextManager[Any] = self._cuda.gpus[self._gpu]
        try:
            with gpu:
                return work()
        except driver_errors() as error:
            raise DeviceLostError(
                f"GPU {self._gpu} does not answer any more: {first_line(error)}; resume from the last checkpoint"
            ) from None
