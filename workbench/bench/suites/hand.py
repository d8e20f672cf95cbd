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
from ..case import Bar, Case, Figures, Options, Say, Suite
from ..contest import relative
from ..hand_eager import MODULES
from ..picture import ratios

CPU_SHAPES: tuple[tuple[str, str, int, int, int], ...] = (
    *(("dense", "float32", *shape) for shape in (
        (700, 700, 700), (1000, 1000, 1000), (1500, 1500, 1500), (2048, 2048, 2048), (3000, 3000, 3000),
        (4096, 4096, 4096), (6000, 6000, 6000), (300, 3000, 5000), (4000, 500, 4000), (1023, 2047, 4095),
        (2500, 2500, 1000), (777, 5003, 1201), (5120, 640, 1920), (1024, 4096, 1024), (3333, 1111, 2222),
        (2048, 1408, 5632),
    )),
    *(("dense", "float64", *shape) for shape in (
        (1000, 1000, 1000), (2048, 2048, 2048), (3001, 1500, 2500), (4096, 4096, 4096)
    )),
    *(("causal", "float32", *shape) for shape in (
        (1024, 64, 1024), (2048, 128, 2048), (3000, 512, 3000), (4096, 1024, 4096)
    )),
)  # fmt: skip
"""Products of a processor: kind, dtype, m, k, n."""

CUDA_SHAPES: tuple[tuple[str, str, int, int, int], ...] = tuple(
    ("dense", dtype, *shape)
    for dtype, shapes in (
        ("float32", ((4096, 4096, 4096), (8192, 8192, 8192), (4096, 4096, 4608), (4100, 5000, 6100),
                     (2048, 3584, 18944), (8192, 2560, 9728), (16384, 16384, 16384), (1000, 12288, 4096))),
        ("tf32", ((8192, 8192, 8192), (16384, 5120, 13824), (4096, 4096, 4096), (12288, 8192, 8192))),
        ("float64", ((4096, 4096, 4096), (8192, 8192, 8192), (6144, 5120, 6144), (16384, 16384, 16384))),
        ("bfloat16", ((8192, 8192, 8192), (16384, 16384, 16384), (4096, 5120, 25600), (16384, 9728, 2560))),
        ("fp32-accurate", ((4096, 4096, 4096), (8192, 8192, 8192), (2048, 3584, 18944), (8192, 2560, 9728))),
    )
    for shape in shapes
)  # fmt: skip
"""Products of a GPU: cubes, and layers of models that no other suite has."""

FIRST_CALL = {"cpu": 0.3, "cuda": 0.5}
"""Seconds that a first call may take beyond the vendor's call."""


PASSIVE = "OPENBLAS_THREAD_TIMEOUT", "OMP_WAIT_POLICY"
"""With these idle threads sleep, the second by the command `lcma`: a new user's spin."""


def _cases(options: Options) -> Iterator[Case]:
    shapes = CPU_SHAPES if options.device == "cpu" else CUDA_SHAPES
    first = Bar("first_extra_s", FIRST_CALL[options.device], at_most=True)
    # Seconds over the vendor's as a share of 3% and 0.1 s; the ratio after the decision; the first call.
    bars = Bar("over_share", 1.0, at_most=True), Bar("after_low", 0.99), first
    for kind, dtype, *shape in shapes[: options.sample]:
        key = f"loop {kind} {dtype} {'x'.join(map(str, shape))}"
        task = {"device": options.device, "kind": kind, "dtype": dtype, "shape": shape, "seed": options.seed}
        yield Case(key, partial(_loop, task), 60, bars)
    if options.device == "cpu":
        named = Bar("cold_s", 4.0, at_most=True), Bar("warm_s", 1.0, at_most=True)
        yield Case("lcma run strassen 700x700x700", _named_scheme, 10, named)
        yield Case("lcma search 3x3x3", _first_find, 30, (Bar("cold_s", 60.0, at_most=True),))
    else:
        for name, most in MODULES.items():
            bar = Bar("over_torch", most, at_most=True)
            yield Case(
                f"eager {name}", partial(_process, "hand_eager", {"module": name, "seed": options.seed}), 30, (bar,)
            )


@lru_cache(maxsize=1)
def _byte_code() -> dict[str, str]:
    """Compile sources to byte code as installing a package does: ours, and Triton's, which some images lack.

    Return the environment in which Python finds it.
    """
    compileall.compile_dir(Path(__file__).parents[3], quiet=2, rx=re.compile(r"/(\.venv|tests|docs)/"))
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
        command = [sys.executable, "-P", "-m", f"{package}.{module}", json.dumps(argument)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise VerificationError(f"{module} ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout)


def _loop(task: dict[str, Any], say: Say) -> Figures:
    figures: dict[str, Any] = _process("hand_loop", task, say)
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
            done = subprocess.run(
                [sys.executable, "-P", "-m", package, *command],
                check=True,
                capture_output=True,
                text=True,
                env={**_environment(), "LCMA_HOME": home},
            )
            seconds.append(time.perf_counter() - began)
            check(done.stdout)
    return {"cold_s": seconds[0], "warm_s": seconds[1]}


SUITE = Suite(
    "hand",
    "a new user's calls: fresh processes, an empty home, defaults",
    _cases,
    ("calls", "vendor_ms", "first_extra_s", "total", "over_share", "decided_s", "after", "after_low", "plan",
     "cold_s", "warm_s", "us", "torch_us", "over_torch", "compiled_us", "torch_compiled_us"),
    picture=partial(ratios, figure="after"),
)  # fmt: skip
