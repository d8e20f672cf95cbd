"""Write requests.json, the requests whose plans are recorded: `python tests/kernels/golden/make_requests.py`.

Every request is a row with all fields written out, those of the machine included. Nothing is drawn at
random and nothing of the package is asked, so that the rows never change with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Row = dict[str, Any]

MACHINES: dict[str, Row] = {
    "golden-cpu-1t": {"device": "cpu", "threads": 1, "free_bytes": 64 << 30, "pool_bytes": 16 << 30},
    "golden-cpu-2t": {"device": "cpu", "threads": 2, "free_bytes": 64 << 30, "pool_bytes": 16 << 30},
    "golden-h200": {"device": "cuda", "threads": None, "free_bytes": 139 << 30, "pool_bytes": None},
}
"""By profile. `free_bytes` is memory of the device, `pool_bytes` what executors on a processor keep between calls."""

SPIN_SECONDS = 2.0**26 / 3e9 / 3
"""What tasks lose to OpenBLAS's idle threads at its default timeout."""

MULTIPROCESSORS = 132

ONE, TWO, GPU = MACHINES

CPU_DTYPES = ("float32", "float64", "complex64", "complex128", "bfloat16", "int32", "int64")
GPU_DTYPES = ("bfloat16", "float16", "tf32", "float32", "float64")
UNIT = {"float32": 2.0**-24, "float64": 2.0**-53, "bfloat16": 2.0**-9, "float16": 2.0**-11, "tf32": 2.0**-11}
"""Unit roundoffs."""
ITEMSIZE = {"float32": 4, "float64": 8, "bfloat16": 2, "float16": 2, "tf32": 4}

LAYERS = (
    (7168, 1536), (1536, 24576), (7168, 576), (512, 32768), (16384, 7168), (7168, 18432), (18432, 7168), (7168, 2048),
    (2048, 7168), (7168, 256), (7168, 129280), (4096, 16384), (4096, 512), (8192, 4096), (4096, 12288), (4096, 8192),
    (4096, 1024), (1024, 4096), (3072, 9216), (3072, 3072), (3072, 12288), (12288, 3072), (3072, 21504), (15360, 3072),
)  # fmt: skip
"""(k, n) of the 24 layers of FalconGEMM's evaluation (arXiv:2605.06057), as in the package's workloads."""
GOLDEN_SECTION = 0.6180339887498949


def row(profile: str, dtype: str, m: int, k: int, n: int, **other: Any) -> Row:
    """A request with all its fields; `other` replaces defaults."""
    machine = MACHINES[profile]
    on_gpu = machine["device"] == "cuda"
    found = {
        "device": machine["device"],
        "profile": profile,
        "threads": machine["threads"],
        "spin_seconds": None if on_gpu else SPIN_SECONDS,
        "free_bytes": machine["free_bytes"],
        "pool_bytes": machine["pool_bytes"],
        "multiprocessors": MULTIPROCESSORS if on_gpu else None,
        "dtype": dtype,
        "m": m,
        "k": k,
        "n": n,
        "batch_a": [],
        "batch_b": [],
        "layouts": ["rows", "rows", "rows"],
        "static": None,
        "max_error": None,
        "max_workspace": None,
        "max_abs": None,
        "triangle": None,
    }
    if unknown := set(other) - set(found):
        raise KeyError(f"a request has no field {', '.join(sorted(unknown))}")
    return found | other


def layers() -> Iterator[Row]:
    """120 of the 960 products (24 layers, 40 numbers of rows each): fewer rows on a processor."""
    shares = [(ONE, "float32", 8), (TWO, "float32", 10), (ONE, "float64", 5), (TWO, "float64", 5)]
    shares += [(ONE, "complex64", 3), (TWO, "complex64", 3), (ONE, "complex128", 3), (TWO, "complex128", 3)]
    shares += [(TWO, "bfloat16", 6), (TWO, "int32", 4), (TWO, "int64", 4)]
    shares += [(GPU, "bfloat16", 14), (GPU, "float16", 13), (GPU, "tf32", 13), (GPU, "float32", 13)]
    shares += [(GPU, "float64", 13)]
    place = 0
    for profile, dtype, count in shares:
        most = 20480 if profile == GPU else 8192
        for _ in range(count):
            k, n = LAYERS[place % len(LAYERS)]
            # Multiples of the golden section fall evenly, however many there are.
            m = 512 * (1 + int(place * GOLDEN_SECTION % 1 * (most // 512)))
            yield row(profile, dtype, m, k, n)
            place += 1


def odd() -> Iterator[Row]:
    """Squares of whole blocks, and sizes that no grid divides: primes, and one more or less than a power of two."""
    for profile, dtype, size in (
        *((ONE, "float32", size) for size in (1024, 1536, 2048, 3000, 4096, 6144)),
        *((TWO, "float32", size) for size in (1024, 2048, 4096, 8192)),
        *((TWO, "float64", size) for size in (2048, 4096)),
        *((GPU, dtype, size) for dtype in GPU_DTYPES for size in (4096, 16384)),
    ):
        yield row(profile, dtype, size, size, size)
    sizes = [(1021, 1021, 1021), (2047, 2049, 2048), (3001, 2999, 3011), (4093, 4099, 4091), (8191, 1999, 5003)]
    for profile in (ONE, TWO):
        for m, k, n in sizes[:4] if profile == ONE else sizes:
            yield row(profile, "float32", m, k, n)
    yield row(TWO, "float64", 2039, 3001, 4001)
    yield row(TWO, "complex64", 1999, 2003, 2011)
    yield row(TWO, "int32", 1009, 1013, 1019)
    for dtype in GPU_DTYPES:
        yield row(GPU, dtype, 8191, 8191, 8191)
        yield row(GPU, dtype, 12289, 4099, 10007)


def thin() -> Iterator[Row]:
    """A short sum over k, or one side short."""
    for profile, m, k, n in (
        (ONE, 4096, 256, 4096), (ONE, 4096, 512, 4096), (ONE, 4096, 768, 4096), (ONE, 192, 8192, 8192),
        (TWO, 8192, 64, 8192), (TWO, 8192, 767, 8192), (TWO, 8192, 1024, 8192), (TWO, 384, 8192, 8192),
        (TWO, 8192, 8192, 320), (TWO, 1, 4096, 4096), (TWO, 4096, 4096, 1),
    ):  # fmt: skip
        yield row(profile, "float32", m, k, n)
    yield row(TWO, "float64", 4096, 384, 6144)
    yield row(TWO, "float64", 640, 6144, 6144)
    for dtype in GPU_DTYPES:
        yield row(GPU, dtype, 16384, 512, 16384)
        yield row(GPU, dtype, 768, 16384, 16384)
    yield row(GPU, "float32", 16384, 16384, 384)
    yield row(GPU, "float64", 16384, 1024, 16384)
    yield row(GPU, "bfloat16", 16, 16384, 16384)


def batched() -> Iterator[Row]:
    """Equal batches, one B for a batch of A, one A for a batch of B, and batches that broadcast."""
    pairs: tuple[tuple[list[int], list[int]], ...] = (([8], [8]), ([16], []), ([], [6]), ([4, 1], [3]))
    for batch_a, batch_b in pairs:
        yield row(TWO, "float32", 1024, 1024, 1024, batch_a=batch_a, batch_b=batch_b)
        yield row(TWO, "float32", 2560, 2048, 3072, batch_a=batch_a, batch_b=batch_b)
        yield row(GPU, "float32", 4096, 4096, 4096, batch_a=batch_a, batch_b=batch_b)
        yield row(GPU, "bfloat16", 4096, 4096, 4096, batch_a=batch_a, batch_b=batch_b)
    yield row(ONE, "float64", 1536, 1536, 1536, batch_a=[3], batch_b=[3])
    yield row(ONE, "complex64", 1024, 1024, 1024, batch_a=[2], batch_b=[])
    yield row(GPU, "float64", 3072, 3072, 3072, batch_a=[12], batch_b=[])
    yield row(GPU, "tf32", 8192, 4096, 4096, batch_a=[4], batch_b=[4])
    yield row(GPU, "float32", 512, 512, 512, batch_a=[64], batch_b=[64])
    yield row(TWO, "float32", 128, 64, 128, batch_a=[2, 32], batch_b=[2, 32])


def static() -> Iterator[Row]:
    """An operand that stays the same from call to call."""
    for profile in (ONE, TWO):
        yield row(profile, "float32", 2048, 4096, 4096, static="B")
        yield row(profile, "float32", 512, 4096, 12288, static="B")
    yield row(TWO, "float64", 3072, 3072, 3072, static="B")
    yield row(TWO, "float32", 4096, 4096, 4096, static="A")
    for dtype in GPU_DTYPES:
        yield row(GPU, dtype, 2048, 7168, 18432, static="B")
    yield row(GPU, "float32", 8192, 8192, 8192, static="A")
    yield row(GPU, "float64", 1024, 4096, 12288, static="B")
    yield row(GPU, "bfloat16", 16384, 8192, 8192, static="B", batch_a=[2])


def limits() -> Iterator[Row]:
    """Bounds on error and workspace, down to those that nothing, or the vendor's product alone, keeps to.

    An error is stated in units of the classical product's own bound, a workspace in those of A, B and C together.
    """
    for profile, dtype, m, k, n in (
        (ONE, "float32", 3072, 3072, 3072),
        (TWO, "float32", 4096, 4096, 4096),
        (GPU, "float32", 4096, 4096, 4096),
        (GPU, "float64", 4096, 4096, 4096),
    ):
        for times in (0.5, 1.01, 4.0, 20.0):
            yield row(profile, dtype, m, k, n, max_error=times * UNIT[dtype] * k)
    for dtype in ("bfloat16", "float16", "tf32"):
        yield row(GPU, dtype, 16384, 8192, 8192, max_error=6.0 * UNIT[dtype] * 8192)
    for profile, dtype, size in ((ONE, "float32", 3072), (TWO, "float32", 6144), (GPU, "float32", 4096)):
        operands = 3 * size * size * ITEMSIZE[dtype]
        for share in (0, 1 / 16, 1 / 3, 1, 3):
            yield row(profile, dtype, size, size, size, max_workspace=int(share * operands))
    yield row(GPU, "bfloat16", 16384, 16384, 16384, max_workspace=1 << 30)
    yield row(TWO, "float64", 4096, 4096, 4096, max_workspace=1 << 26, max_error=4 * UNIT["float64"] * 4096)
    yield row(TWO, "float32", 2048, 2048, 2048, max_workspace=0, layouts=["scattered", "rows", "rows"])


def machine() -> Iterator[Row]:
    """Little free memory, a small pool, and idle threads that do not spin."""
    for profile in (ONE, TWO):
        yield row(profile, "float32", 6144, 6144, 6144, free_bytes=200 << 20)
        yield row(profile, "float32", 8192, 8192, 8192, pool_bytes=256 << 20)
        yield row(profile, "float64", 4096, 4096, 4096, free_bytes=1 << 20, pool_bytes=1 << 20)
    for size in (1024, 2048, 3072):
        yield row(TWO, "float32", size, size, size, spin_seconds=0.0)
    yield row(TWO, "float64", 2048, 2048, 2048, spin_seconds=0.0)


def small() -> Iterator[Row]:
    """Nothing to multiply, or next to nothing."""
    for m, k, n in ((0, 64, 64), (64, 0, 64), (1, 1, 1), (3, 5, 7), (100, 100, 100), (512, 512, 512)):
        yield row(TWO, "float32", m, k, n)
    yield row(ONE, "float64", 16, 16, 0)
    yield row(ONE, "float32", 2048, 2048, 2048, batch_a=[0], batch_b=[0])
    for m, k, n in ((0, 4096, 4096), (1, 1, 1), (128, 128, 128), (1024, 1024, 1024)):
        yield row(GPU, "float32", m, k, n)
    yield row(GPU, "bfloat16", 2048, 2048, 2048)


def integers() -> Iterator[Row]:
    """Integers whose largest magnitude is stated."""
    yield row(TWO, "int8", 2048, 2048, 2048, max_abs=15)
    yield row(TWO, "int8", 2048, 2048, 2048, max_abs=128)
    yield row(TWO, "int32", 2048, 2048, 2048, max_abs=100)
    yield row(TWO, "int32", 2048, 2048, 2048, max_abs=100_000)
    yield row(TWO, "int64", 1536, 1536, 1536, max_abs=1000)
    yield row(TWO, "int64", 2048, 2048, 2048)


def layouts() -> Iterator[Row]:
    """Operands and results by columns, or by neither."""
    yield row(TWO, "float32", 4096, 4096, 4096, layouts=["columns", "rows", "rows"])
    yield row(TWO, "float32", 4096, 4096, 4096, layouts=["rows", "columns", "rows"])
    yield row(TWO, "float32", 4096, 4096, 4096, layouts=["columns", "columns", "columns"])
    yield row(TWO, "float32", 2048, 3072, 4096, layouts=["scattered", "scattered", "rows"])
    yield row(ONE, "float64", 2048, 2048, 2048, layouts=["rows", "columns", "scattered"])
    yield row(GPU, "float32", 8192, 8192, 8192, layouts=["rows", "columns", "rows"])
    yield row(GPU, "bfloat16", 8192, 8192, 8192, layouts=["columns", "rows", "rows"])


def triangle(side: str, upper: bool = False, shared: bool = False) -> Row:
    return {"side": side, "upper": upper, "shared": shared}


OUT, LEFT, RIGHT = triangle("out"), triangle("left"), triangle("right")
GRAM = triangle("out", shared=True)


def sized(side: str, rows: int, depth: int) -> tuple[int, int, int]:
    """m, k, n of a product whose triangle has so many rows; `depth` is the other size."""
    return {"out": (rows, depth, rows), "left": (rows, rows, depth), "right": (depth, rows, rows)}[side]


def causal_cpu() -> Iterator[Row]:
    """Triangular products on a processor: attention's, trmm and syrk."""

    def of(profile: str, dtype: str, where: Row, rows: int, depth: int, **other: Any) -> Row:
        if where["side"] == "out" and not other.get("layouts"):
            other["layouts"] = ["rows", "columns", "rows"]  # Q K^T, A A^T
        return row(profile, dtype, *sized(where["side"], rows, depth), triangle=where, **other)

    for profile in (ONE, TWO):
        for where in (OUT, LEFT, RIGHT, GRAM):
            for rows in (2048, 4096):
                yield of(profile, "float32", where, rows, rows)
        yield of(profile, "float32", OUT, 8192, 1024)
        yield of(profile, "float32", LEFT, 1024, 1024)
    for where in (OUT, LEFT, GRAM):
        yield of(TWO, "float32", where, 8192, 8192)
        yield of(TWO, "float64", where, 4096, 4096)
    for where in (triangle("out", True), triangle("left", True), triangle("right", True), triangle("out", True, True)):
        yield of(TWO, "float32", where, 3072, 2048)
    for rows, depth in ((256, 256), (512, 64), (2048, 128), (16384, 256), (3000, 1001), (4097, 4099), (5003, 2000)):
        yield of(TWO, "float32", OUT, rows, depth)
    for rows, depth in ((512, 512), (16384, 128), (4095, 4097), (3001, 3001)):
        yield of(TWO, "float32", LEFT, rows, depth)
    yield of(ONE, "float64", RIGHT, 2999, 3001)
    yield of(TWO, "float64", RIGHT, 4096, 2048)
    yield of(TWO, "float64", triangle("left", True), 8192, 512)
    yield of(ONE, "float64", GRAM, 3072, 1024)
    yield of(TWO, "float32", OUT, 2048, 256, batch_a=[2, 8], batch_b=[2, 8])
    yield of(TWO, "float32", OUT, 2048, 2048, layouts=["rows", "rows", "rows"])
    yield of(TWO, "float32", LEFT, 4096, 4096, max_workspace=0)
    yield of(TWO, "float32", OUT, 4096, 4096, max_workspace=1 << 26)
    yield of(TWO, "float32", OUT, 0, 64)


def causal_gpu() -> Iterator[Row]:
    """Triangular products on a GPU."""

    def of(dtype: str, where: Row, rows: int, depth: int, **other: Any) -> Row:
        return row(GPU, dtype, *sized(where["side"], rows, depth), triangle=where, **other)

    for dtype in GPU_DTYPES:
        for where in (OUT, LEFT):
            for rows, depth in ((4096, 4096), (8192, 8192), (16384, 4096)):
                yield of(dtype, where, rows, depth)
    for dtype in ("float32", "float64"):
        yield of(dtype, RIGHT, 8192, 8192)
        yield of(dtype, GRAM, 8192, 8192)
        yield of(dtype, OUT, 12000, 3000)
        yield of(dtype, OUT, 8190, 8190)
    for where in (triangle("out", True), triangle("left", True), triangle("right", True), triangle("out", True, True)):
        yield of("float32", where, 8192, 4096)
    yield of("float32", OUT, 8196, 8196)
    yield of("float32", OUT, 9001, 8192)
    yield of("float32", LEFT, 12001, 6000)
    yield of("float32", OUT, 256, 256)
    yield of("tf32", OUT, 5003, 4999)
    for dtype in ("bfloat16", "float32", "float64"):
        yield of(dtype, OUT, 2048, 128, batch_a=[4, 16], batch_b=[4, 16])
    yield of("bfloat16", LEFT, 4096, 128, batch_a=[2, 8, 4], batch_b=[2, 8, 1])


GROUPS = (layers, odd, thin, batched, static, limits, machine, small, integers, layouts, causal_cpu, causal_gpu)


def requests() -> list[Row]:
    """All rows, each with an `id`: its group and its place there."""
    return [
        {"id": f"{group.__name__.replace('_', '-')}-{place:03d}"} | found
        for group in GROUPS
        for place, found in enumerate(group())
    ]


def text(rows: list[Row]) -> str:
    """Rows as JSON, a line each."""
    return "[\n" + ",\n".join(json.dumps(found) for found in rows) + "\n]\n"


if __name__ == "__main__":
    (HERE / "requests.json").write_text(text(requests()), encoding="utf-8")
