"""Products that compete on a processor: the libraries, and plans of ours, checked and then timed in turns."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from .contest import Contest, FrobeniusTruth, gflops, paired_interval, ratio_to
from .requirements import require_right

Matrix = npt.NDArray[Any]
Call = Callable[[], Matrix]
Sizes = tuple[int, int, int]

CHECKED = 192
"""Rows of C that are compared with float64."""

LIMIT = {"float32": 1e-4, "float64": 1e-12}


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """All libraries on so many threads."""
    from ...kernels.cpu.blas import backends

    before = [(backend, backend.limit(threads)) for backend in backends()]
    try:
        yield
    finally:
        for backend, threads in before:
            backend.limit(threads)


def operands(sizes: Sizes, dtype: str, seed: int) -> tuple[Matrix, Matrix]:
    """Standard normal A and B."""
    rng, (m, k, n) = np.random.default_rng(seed), sizes
    return tuple(rng.standard_normal(shape, dtype=np.dtype(dtype).type) for shape in ((m, k), (k, n)))  # type: ignore[return-value]


def libraries(a: Matrix, b: Matrix, threads: int) -> dict[str, Call]:
    """The products to beat: one for every installed library that works the dtype."""
    from ...kernels.cpu.blas import backends

    dtype = a.dtype.name
    calls: dict[str, Call] = {}
    for backend in backends():
        if backend.supports(dtype):
            out = np.empty((len(a), b.shape[1]), a.dtype)

            def call(backend: Any = backend, out: Matrix = out) -> Matrix:
                backend.multiply(a, b, out, dtype)
                return out

            calls[backend.name] = call
    return calls


def compete(a: Matrix, b: Matrix, base: Mapping[str, Call], ours: Mapping[str, Call], rounds: int) -> dict[str, Any]:
    """Figures of all: Gflop/s, error, and for ours the ratio to the best library.

    Raises:
        VerificationError: a product is wrong; nothing was timed.
    """
    (m, k), n = a.shape, b.shape[1]
    some = np.linspace(0, m - 1, min(m, CHECKED)).astype(int)
    truth = FrobeniusTruth(a[some], b)
    errors = {}
    for name, call in {**base, **ours}.items():
        errors[name] = require_right(name, truth.error(call()[some]), LIMIT[a.dtype.name])
    gc.collect()
    timings = Contest({**base, **ours}, rounds).run()
    library, first = timings.fastest(base), next(iter(ours))
    return {
        "gflops": {name: gflops(m, k, n, timing.median) for name, timing in timings.items()},
        "quartiles_s": timings.quartiles_s,
        "error": {name: float(error) for name, error in errors.items()},
        "best_library": library.name,
        "ratios": {name: ratio_to(library, timings[name]) for name in ours},
        "ratio": ratio_to(library, timings[first]),
        "interval": list(paired_interval(library, timings[first])),
    }
