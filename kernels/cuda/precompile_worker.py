"""A process that compiles kernels for `precompile`: reads a line of JSON for each, and writes one when it is done.

It needs no GPU: the target is part of the input, and nothing is loaded or launched.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any

from ..codegen.modules import load


class OfflineDriver:
    """A substitute for Triton's driver to compile for a GPU that this process does not use."""

    def __init__(self, backend: str, arch: Any, warp_size: int) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget(backend, arch, warp_size)

    @classmethod
    def activate(cls, backend: str, arch: Any, warp_size: int) -> None:
        """Compile for this target from now on."""
        from triton.runtime.driver import driver

        driver.set_active(cls(backend, arch, warp_size))

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def main() -> None:
    """Compile kernels into Triton's cache until the input ends; the first line is the target.

    The others are lines [module, text, kernel, asked]: `text` is that of a generated module, else None, `asked` what
    Triton recorded.
    """
    # The compiler may print: answers are written to the original standard output, all else to standard error.
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        OfflineDriver.activate(*json.loads(sys.stdin.readline()))
        for line in sys.stdin:
            try:
                module, text, kernel, asked = json.loads(line)
                getattr(import_module(module) if text is None else load(text), kernel).preload(asked)
                answer = ""
            except Exception as error:  # any exception of the compiler: the parent reports it, as will the launch
                answer = f"{type(error).__name__}: {error}".splitlines()[0]
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
