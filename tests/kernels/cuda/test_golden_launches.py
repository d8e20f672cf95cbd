"""The GPU level executors launch, call and allocate what they did, on tensors without data: launches.json.

`python -m tests.kernels.cuda.test_golden_launches` prints the record: for every case the number of steps and the
sha256 of their text, with the shapes and strides of all tensors. Generated kernels are named by the hash of their text.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from lcma.kernels.causal.candidates import TriangularSource
from lcma.kernels.cuda import combine, launch, tiles
from lcma.kernels.cuda.level import CudaMethod, cuda_level
from lcma.kernels.cuda.requests import request_of
from lcma.schemes_db.symmetry import Triangle

from ..gpu import H200, SCHEME, blank, candidate

pytest.importorskip("triton")

RECORD = Path(__file__).parent / "launches.json"
"""The cases are its names: the method, schemes, dtype, sizes, rows or columns and batch, or a scheme and a triangle."""


class Log(TorchDispatchMode):
    """The operators of torch and the kernels of this package, in order, as text."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not func.is_view:
            named = {name: value for name, value in kwargs.items() if value is not None}
            self.lines.append(f"{func} {[_text(x) for x in args]} { {k: _text(v) for k, v in named.items()} }")
        return func(*args, **kwargs)

    def starter(self, kernel: Any, grid: Any, like: Any) -> Callable[..., None]:
        """In place of `launch.starter`."""

        def start(*args: Any, **options: Any) -> None:
            text = [_text(getattr(x, "base", x)) for x in args]
            name = f"{kernel.__module__.rpartition('.')[2]}.{kernel.__name__}"
            self.lines.append(f"launch {name} {grid} {text} {sorted(options.items())}")

        return start


def _text(x: Any) -> str:
    if isinstance(x, torch.Tensor):
        return f"{x.dtype}{tuple(x.shape)}{x.stride()}+{x.storage_offset()}"
    return "device" if isinstance(x, torch.device) else str(x)


LEADING = {"AB": ((3,), (3,)), "A": ((3,), ()), "B": ((), (2, 2))}
"""Sizes of a batch before those of A and of B."""


def dense(method: str, schemes: str, dtype: str, sizes: str, order: str, how: str = "") -> None:
    """A product of one or a batch, with B prepared ("packed"), or in pieces that fit less memory."""
    m, k, n = map(int, sizes.split("x"))
    shapes = [(*leading, *shape) for leading, shape in zip(LEADING.get(how, ((), ())), ((m, k), (k, n)), strict=True)]
    a, b = (blank(*shape, dtype=dtype, by_columns=one == "C") for shape, one in zip(shapes, order[:2], strict=True))
    request, product = replace(request_of(a, b), device="cuda"), candidate(*schemes.split("*"), method=method)
    executor: Any = SCHEME.build(product, request, H200)
    if how == "pieces":
        executor = SCHEME.build(product, replace(request, max_workspace=2 * executor.workspace // 3), H200)
    executor.run(a, executor.prepare(b) if how == "packed" else b)


def structured(scheme: str, label: str, dtype: str, size: str) -> None:
    """A product with a triangle: a side, and ":upper"."""
    side, _, upper = label.partition(":")
    level = cuda_level(TriangularSource(scheme, Triangle(side, bool(upper))).program)
    m, k, n = (int(size) * parts for parts in level.target.shape)
    a, b = blank(m, k, dtype=dtype), blank(k, n, dtype=dtype, by_columns=bool(upper))
    level.run(a[None], b[None], blank(m, n, dtype=dtype)[None])


def run(name: str) -> None:
    """Run the case of a name."""
    words = name.split()
    (dense if words[0] in list(CudaMethod) else structured)(*words)


def record(call: Callable[[], None], patch: Callable[[Any, str, Any], None]) -> list[Any]:
    """The number of steps of a call, and the sha256 of their text; `patch` as pytest's `monkeypatch.setattr`."""
    log = Log()
    patch(launch, "starter", log.starter)
    patch(tiles, "starter", log.starter)
    # Kept launches would not ask for a start again.
    patch(combine, "KEPT", 0)
    with log:
        call()
    return [len(log.lines), hashlib.sha256("\n".join(log.lines).encode()).hexdigest()[:32]]


WANTED = json.loads(RECORD.read_text(encoding="utf-8"))


def test_launches_are_those_of_the_record(monkeypatch):
    assert len(WANTED) == 54
    assert [name for name in WANTED if record(partial(run, name), monkeypatch.setattr) != WANTED[name]] == []


if __name__ == "__main__":
    found = {name: record(partial(run, name), setattr) for name in WANTED}
    lines = [f"{json.dumps(name)}: {json.dumps(steps)}" for name, steps in found.items()]
    print("{\n" + ",\n".join(lines) + "\n}")
