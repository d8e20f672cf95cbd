"""`lcma time`"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

import click
import numpy as np

from ...errors import TargetError, VerificationError
from ...schemes_db.catalog import Catalog
from ..output import print_json, print_table
from ..schemes import scheme_argument
from ..timing import Matrix, gflops, interleaved, ratio_to
from .run import structured_product

MAX_ERROR = {"float32": 1e-3, "float64": 1e-10}


@click.command("time")
@click.argument("scheme", metavar="SCHEME")
@click.option("--size", default="2048", show_default=True, metavar="N|MxKxN", help="The matrices.")
@click.option(
    "--levels",
    type=click.IntRange(1, 6),
    multiple=True,
    default=(1,),
    show_default=True,
    help="Levels of recursion; may be given more than once.",
)
@click.option("--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True)
@click.option("--rounds", type=click.IntRange(1, 1000), default=7, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random matrices.")
@click.option("--record", is_flag=True, help="Keep the figures in the catalogue.")
@click.option("--json", "as_json", is_flag=True)
def command(
    scheme: str, size: str, levels: tuple[int, ...], dtype: str, rounds: int, seed: int, record: bool, as_json: bool
) -> None:
    """Time a scheme against numpy, interleaved, after a correctness check.

    Ratios are of medians over the rounds; more than 1 means faster than numpy. For a triangular or
    masked target the baseline is numpy's full product.
    """
    found, certificate = scheme_argument(scheme)
    m, k, n = _sizes(size)
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
    from ...kernels import matmul

    calls: dict[str, Callable[[], Matrix]] = {"numpy": partial(np.matmul, a, b, out=np.empty((m, n), dtype=dtype))}
    for level in levels:
        label = f"{found.name or found.target.name}, {level} level{'s' if level > 1 else ''}"
        calls[label] = partial(matmul, a, b, (found, certificate), level, out=np.empty((m, n), dtype=dtype))
    truth = structured_product(found, a.astype(np.float64), b.astype(np.float64))
    norm = float(np.linalg.norm(truth)) or 1.0
    errors = {}
    for name, call in calls.items():
        result = structured_product(found, a, b) if name == "numpy" else call()
        errors[name] = float(np.linalg.norm(result - truth)) / norm
        if not errors[name] <= MAX_ERROR[dtype]:
            raise VerificationError(f"{name} came out wrong: relative error {errors[name]:.1e}; nothing was timed")
    timings = interleaved(calls, rounds)
    rows = [
        _Row(
            name,
            timing.median,
            timing.quartiles,
            gflops(m, k, n, timing.median),
            ratio_to(timings["numpy"], timing),
            errors[name],
        )
        for name, timing in timings.items()
    ]
    if record:
        with Catalog.open() as catalog:
            for row in rows[1:]:
                detail = {"dtype": dtype, "size": [m, k, n], **asdict(row)}
                catalog.measure(found.digest, f"ratio to numpy, {row.what}", row.ratio, "x", platform.node(), detail)
    if as_json:
        print_json(
            {
                "size": [m, k, n],
                "dtype": dtype,
                "rounds": rounds,
                "digest": found.digest,
                "rows": [asdict(row) for row in rows],
            }
        )
    else:
        print_table(
            ("what", "median", "quartiles", "effective GFLOP/s", "ratio", "error"), [row.cells() for row in rows]
        )


@dataclass(frozen=True)
class _Row:
    """The figures of one contender."""

    what: str
    median_s: float
    quartiles_s: tuple[float, float]
    effective_gflops: float
    ratio: float
    relative_error: float

    def cells(self) -> tuple[str, ...]:
        lower, upper = (1e3 * seconds for seconds in self.quartiles_s)
        return (
            self.what,
            f"{1e3 * self.median_s:.1f} ms",
            f"{lower:.1f} - {upper:.1f} ms",
            f"{self.effective_gflops:.1f}",
            f"{self.ratio:.3f}",
            f"{self.relative_error:.1e}",
        )


def _sizes(text: str) -> tuple[int, int, int]:
    parts = text.lower().split("x")
    if len(parts) not in (1, 3) or not all(part.isdigit() and 1 <= int(part) <= 1 << 17 for part in parts):
        raise TargetError(f"size {text!r} must be N or MxKxN, each from 1 to {1 << 17}")
    m, k, n = (int(part) for part in (parts * 3 if len(parts) == 1 else parts))
    return m, k, n
