"""Other libraries' exact products: small programs, compiled where their headers are, that multiply on request."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...home import cache_folder, writable
from .table import rows

_SOURCES = Path(__file__).with_name("peers")

OPTIMISED = ("-O3", "-march=native")


M4RI, FLINT, FFLAS = rows("exact_peers")
"""Libraries: the source of a program, the compiler and what it links, and the Debian packages to install."""


@lru_cache(maxsize=8)
def compiled(library: Any) -> Path:
    """The library's program, compiled for this processor and stored in the cache.

    Raises:
        PlanError: there is no compiler, or it does not find the library.
    """
    compiler = shutil.which(library.compiler)
    mend = f"apt install {library.packages}"
    if compiler is None:
        raise PlanError(f"{library.name} is left out: no compiler is named {library.compiler}; {mend} g++")
    texts = b"".join((_SOURCES / name).read_bytes() for name in (library.source, "peer.h"))
    stamp = hashlib.sha256(texts + repr((library, OPTIMISED)).encode()).hexdigest()[:16]
    program = writable(cache_folder() / "peers") / f"{Path(library.source).stem}-{stamp}"
    if program.exists():
        return program
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        made = Path(folder) / "program"
        source = str(_SOURCES / library.source)
        done = subprocess.run(
            [compiler, *OPTIMISED, source, "-o", str(made), *library.links.split()],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error" in line] or ["the compiler failed"]
            raise PlanError(f"{library.name} is left out: {errors[0].strip()}; {mend}")
        made.replace(program)
    return program


class Peer:
    """A program that holds two operands and multiplies them on request, in one thread.

    `a` and `b` are rows of words (GF(2), 64 elements each) or of residues, 8 bytes an entry; `sizes` counts elements.
    Use it as a context: the process ends with it.

    Raises:
        PlanError: the program ended before it was ready.
    """

    def __init__(
        self,
        command: list[str],
        a: npt.NDArray[Any],
        b: npt.NDArray[Any],
        sizes: tuple[int, int, int],
        modulus: int,
        variant: str = "",
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lcma-")
        self._dtype, self._shape = a.dtype, (len(a), b.shape[1])
        files = [str(Path(self._folder.name) / name) for name in ("a", "b")]
        for file, matrix in zip(files, (a, b), strict=True):
            np.ascontiguousarray(matrix).tofile(file)
        arguments = [*files, *map(str, sizes), str(modulus), variant]
        self._process: Any = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        try:
            if self._answer() != "ready":
                raise PlanError(f"{command[0]} is not a program that multiplies on request")
        except PlanError:
            self.__exit__()
            raise

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        """End the process and remove its files."""
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def multiply(self) -> float:
        """Compute the product once; the seconds of it, without the request.

        Raises:
            PlanError: the program has ended or answered no number.
        """
        answer = self._ask("multiply")
        try:
            seconds = float(answer)
        except ValueError:
            seconds = math.nan
        if not seconds >= 0:
            raise PlanError(f"the peer answered {answer[:80]!r} in place of seconds")
        return seconds

    def product(self) -> npt.NDArray[Any]:
        """The product as rows of words or residues."""
        file = str(Path(self._folder.name) / "c")
        if self._ask(f"write {file}") != "done":
            raise PlanError("the peer did not write its product")
        return np.fromfile(file, self._dtype).reshape(self._shape)

    def _ask(self, line: str) -> str:
        with suppress(OSError):  # a process that has ended answers nothing
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        answer = self._process.stdout.readline()
        if not answer:
            raise PlanError(f"the peer ended with status {self._process.wait()}")
        return answer.rstrip("\n")
