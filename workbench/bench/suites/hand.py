"""Suite "hand": what a new user gets, in processes of their own with an empty home and defaults."""

from __future__ import annotations

import atexit
import compileall
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ....errors import VerificationError
from ..case import Bar, Case, Figures, Options, Say, barred
from ..contest import relative
from ..hand_eager import MODULES
from ..picture import ratios
from ..requirements import in_new_process
from ..table import rows

LOOPS = rows("hand")
"""Products that a loop runs; those of a GPU are cubes, and layers of models that no other suite has."""

PASSIVE = "OPENBLAS_THREAD_TIMEOUT", "OMP_WAIT_POLICY"
"""With these idle threads sleep, the second by the command `lcma`: a new user's spin."""


@barred
def cases(options: Options) -> Iterator[Case]:
    loops = [one for one in LOOPS if one.device == options.device]
    for one in loops[: options.sample]:
        key = f"loop {one.kind} {one.dtype} {'x'.join(map(str, one.sizes))}"
        task = {"device": one.device, "kind": one.kind, "dtype": one.dtype, "shape": one.sizes, "seed": options.seed}
        yield Case(key, partial(_loop, task))
    if options.device == "cpu":
        yield Case("lcma run strassen 700x700x700", _named_scheme)
        yield Case("lcma search 3x3x3", _first_find)
    else:
        for name, one in MODULES.items():
            bar = Bar("over_torch", one.bar, at_most=True)
            task = {"module": name, "seed": options.seed}
            yield Case(f"eager {name}", partial(_process, "hand_eager", task), (bar,))


@lru_cache(maxsize=1)
def _byte_code() -> dict[str, str]:
    """Compile sources to byte code as installing a package does: ours, and Triton's, which some images lack.

    Return the environment in which Python finds it.
    """
    compileall.compile_dir(Path(__file__).parents[3], quiet=2, rx=re.compile(r"/(\.venv|build|tests|docs)/"))
    found = importlib.util.find_spec("triton")
    if found is None or found.origin is None or Path(importlib.util.cache_from_source(found.origin)).exists():
        return {}
    folder = tempfile.mkdtemp(prefix="lcma-hand-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    environment = {"PYTHONPYCACHEPREFIX": folder}
    for command in (["-m", "compileall", "-q", "-j0", str(Path(found.origin).parent)], ["-c", "import torch, lcma"]):
        subprocess.run([sys.executable, *command], capture_output=True, env=_environment() | environment)
    return environment


def _environment() -> dict[str, str]:
    """Return this process's environment without PASSIVE, with the folders of its modules."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return {name: text for name, text in environment.items() if name not in PASSIVE}


def _process(module: str, argument: dict[str, Any], say: Say) -> Any:
    """Return the JSON that a module of this folder prints, run in a process with an empty home."""
    byte_code = _byte_code()
    with tempfile.TemporaryDirectory(prefix="lcma-hand-") as home:
        caches = {"LCMA_HOME": f"{home}/home", "TRITON_CACHE_DIR": f"{home}/triton"}
        environment = {**_environment(), **byte_code, **caches, "LCMA_LEARN": "1"}
        package = __package__.rpartition(".")[0]
        return json.loads(in_new_process(["-P", "-m", f"{package}.{module}", json.dumps(argument)], environment))


def _loop(task: dict[str, Any], say: Say) -> Figures:
    """Of the figures `over_share` is the seconds over the vendor's as a share of 3% and 0.1 s."""
    figures = _process("hand_loop", task, say)
    return figures | {"over_share": figures["over_s"] / figures["allowed_s"]}


def _named_scheme(say: Say) -> Figures:
    """Return the seconds of `lcma run` with a scheme, the product checked."""
    with tempfile.TemporaryDirectory(prefix="lcma-hand-") as folder:
        a, b = np.random.default_rng(0).standard_normal((2, 700, 700), dtype=np.float32)
        paths = [str(Path(folder, name)) for name in ("a.npy", "b.npy")]
        np.save(paths[0], a)
        np.save(paths[1], b)
        out = str(Path(folder, "c.npy"))
        wanted = a.astype(np.float64) @ b

        def check(printed: str) -> None:
            error = relative(np.load(out), wanted)
            if error > 1e-5:
                raise VerificationError(f"lcma run strassen has a relative error of {error:.1e}")

        return _twice(["run", "strassen", *paths, "--out", out, "--force"], check)


def _first_find(say: Say) -> Figures:
    """Return the seconds of `lcma search 3x3x3`, whose rank is checked: finds are proven before they are printed."""

    def check(printed: str) -> None:
        if "found <3x3x3:23 " not in printed:
            raise VerificationError("lcma search 3x3x3 found no scheme of rank 23")

    return _twice(["search", "3x3x3", "--rank", "23", "--seed", "1"], check)


def _twice(command: list[str], check: Callable[[str], None]) -> Figures:
    """Return the seconds of a whole command in a home that is empty, and in a second process."""
    seconds = []
    with tempfile.TemporaryDirectory(prefix="lcma-hand-") as home:
        package = __name__.partition(".workbench")[0]
        for _ in range(2):
            began = time.perf_counter()
            printed = in_new_process(["-P", "-m", package, *command], {**_environment(), "LCMA_HOME": home})
            seconds.append(time.perf_counter() - began)
            check(printed)
    return {"cold_s": seconds[0], "warm_s": seconds[1]}


picture = partial(ratios, figure="after")
