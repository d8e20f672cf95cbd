"""A process that compiles kernels for `precompile`: a line of JSON in for each, a line out when it is done.

It needs no GPU: for what to compile comes with the kernel, and nothing is loaded or started.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any

from ..codegen.modules import load


class Target:
    """Stands in for Triton's driver where kernels are compiled for a GPU that this process does not touch."""

    def __init__(self, backend: str, arch: Any, warp_size: int) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget(backend, arch, warp_size)

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def compile_kernel(module: str, text: str | None, kernel: str, asked: str) -> None:
    """Compile one kernel into Triton's cache: of a generated module its text, `asked` as Triton recorded it."""
    held = import_module(module) if text is None else load(text)
    getattr(held, kernel).preload(asked)


def main() -> None:
    """Work lines [module, text, kernel, asked] until there are no more; the first says the target."""
    from triton.runtime.driver import driver

    # The compiler may print: answers go where standard output was, all else to standard error.
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        driver.set_active(Target(*json.loads(sys.stdin.readline())))
        for line in sys.stdin:
            try:
                compile_kernel(*json.loads(line))
                answer = ""
            except Exception as error:  # whatever the compiler raises: the parent says it, the launch will, too
                answer = f"{type(error).__name__}: {error}".splitlines()[0]
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
