"""Golden record of the CPU level executors: the bits of C, the workspace and the predicted stages of small products.

`python tests/kernels/golden_levels.py` prints the record. Products of blocks are summed in a fixed order by
`multiply_in_order`, so that the bits depend on the order of this package's own arithmetic and on no BLAS. With
`--blas` they are numpy's own: such a record compares two checkouts on one machine.
"""

import hashlib
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lcma.kernels.causal.candidates import TriangularSource
from lcma.kernels.cpu.leaf import Leaf
from lcma.kernels.cpu.level import Level
from lcma.kernels.cpu.partition import CpuMethod
from lcma.kernels.cpu.triangular_products import HalfProduct
from lcma.kernels.cpu.workspace import Pool
from lcma.schemes_db import parse_target
from lcma.schemes_db.algebra import naive
from lcma.schemes_db.program import ProductKind, Program
from lcma.schemes_db.resolve import resolve
from lcma.schemes_db.straightline import program_of
from lcma.schemes_db.symmetry import SIDES, Triangle, triangle_of

RECORD = Path(__file__).parent / "golden" / "levels.json"

DENSE = {
    "strassen": ("strassen",),
    "laderman": ("laderman",),
    "strassen * strassen": ("strassen", "strassen"),
    "laderman * strassen": ("laderman", "strassen"),
}
METHODS = {"batch": CpuMethod(), "tasks": CpuMethod(tasks=True), "loop": CpuMethod(loop=True)}
STRUCTURED = ("tri-left", "tri-right:upper", "tri-out", "tri-out:upper")
MASK = "3x2x3:blocks(F./FF/.F,F.F/FFF,F../FL./.FF)"
GROUPED = ("eca-stage1", "4x4x4-tri-out-r34", "2x2x2-tri-left-r6")
TRIANGLES = tuple(Triangle(side, upper) for side in SIDES for upper in (False, True))


@dataclass(frozen=True)
class Case:
    """An executor, made for sizes, dtype and layouts, and the product that it runs.

    `garbage`: NaN outside the triangle of an operand.
    """

    make: Callable[[tuple[int, int, int], str, tuple[bool, bool, bool]], Any]
    sizes: tuple[int, int, int]
    dtype: str = "float32"
    by_columns: tuple[bool, bool, bool] = (False, False, False)
    garbage: Triangle | None = None


def half(triangle: Triangle, strips: int, sizes: tuple[int, int, int], dtype: str, _: object) -> Any:
    return HalfProduct(triangle, sizes, dtype, strips)


def leaf(sizes: tuple[int, int, int], dtype: str, _: object) -> Any:
    return Leaf(sizes, dtype)


def nested(*names: str) -> Program:
    """The program of schemes by level, outermost first."""
    head, *below = (program_of(resolve(name)[0]) for name in names)
    for program in below:
        head = head.nested({ProductKind.FULL: program})
    return head


def cases() -> Iterator[tuple[str, Case]]:
    """Every case with its name."""
    yield from _dense()
    yield from _structured()
    yield from _grouped()
    yield from _strips()
    for name in ("none", "strassen", "laderman * strassen"):
        make = leaf if name == "none" else partial(Level, nested(*DENSE[name]), method=METHODS["loop"])
        for sizes in ((34, 46, 38), (6, 2300, 7)):
            yield f"int8 {name} {sizes}", Case(make, sizes, "int8")


def _dense() -> Iterator[tuple[str, Case]]:
    rows = (False, False, False)
    every = tuple(itertools.product((False, True), repeat=3))
    runs = [((36, 36, 36), "float32", rows), ((67, 59, 71), "float64", rows), ((1, 5, 3), "float32", rows)]
    runs += [((30, 26, 38), dtype, rows) for dtype in ("complex64", "int32")]
    for (name, names), (how, method) in itertools.product(DENSE.items(), METHODS.items()):
        make = partial(Level, nested(*names), method=method)
        more = [((35, 36, 37), "float32", columns) for columns in every] if name == "strassen * strassen" else []
        for sizes, dtype, columns in runs + more:
            yield f"{how} {name} {sizes} {dtype} {_letters(columns)}", Case(make, sizes, dtype, columns)


def _structured() -> Iterator[tuple[str, Case]]:
    programs = {form: program_of(naive(parse_target(f"2x2x2:{form}"))) for form in STRUCTURED}
    for form, program in programs.items():
        programs[form] = program.nested({ProductKind.FULL: nested("strassen")})
    programs["mask"] = program_of(naive(parse_target(MASK)))
    columns = ((False, False, False), (True, False, True))
    for (form, program), (how, method), layout in itertools.product(programs.items(), METHODS.items(), columns):
        make, garbage = partial(Level, program, method=method), triangle_of(program.target)
        for sizes in ((300, 300, 300), (37, 37, 37)) if form != "mask" else ((45, 40, 45),):
            yield f"{how} {form} {sizes} {_letters(layout)}", Case(make, sizes, "float32", layout, garbage)


def _grouped() -> Iterator[tuple[str, Case]]:
    every = tuple(itertools.product((False, True), repeat=3))
    for name, triangle in itertools.product(GROUPED, (*TRIANGLES, Triangle("out", shared=True))):
        label = f"{triangle.side}{':upper' * triangle.upper}{':shared' * triangle.shared}"
        runs = [(300, 300, 300), (67, 67, 67)] if name == "eca-stage1" else [(67, 67, 67)]
        layouts = every if name == "4x4x4-tri-out-r34" and not triangle.shared else every[:1]
        if triangle.shared:
            layouts = ((False, True, False), (True, False, True))
        dtypes = ("float32", "complex64", "int64") if name == "4x4x4-tri-out-r34" else ("float32",)
        for sizes, layout, dtype in itertools.product(runs, layouts, dtypes):
            if dtype != "float32" and layout not in layouts[:1]:
                continue
            program = TriangularSource(name, triangle).program
            if name == "2x2x2-tri-left-r6":  # with a level below for its full products
                program = program.nested({ProductKind.FULL: nested("strassen")})
            make = partial(Level, program, method=CpuMethod(grouped=True))
            text = f"grouped {name} {label} {sizes} {dtype} {_letters(layout)}"
            yield text, Case(make, sizes, dtype, layout, triangle)


def _strips() -> Iterator[tuple[str, Case]]:
    layouts = ((False, False, False), (True, True, True))
    for triangle, layout in itertools.product(TRIANGLES, layouts):
        m, k, n = {"out": (90, 41, 90), "left": (90, 90, 41), "right": (41, 90, 90)}[triangle.side]
        label = f"{triangle.side}{':upper' * triangle.upper} {_letters(layout)}"
        for count in (1, 4):
            make = partial(half, triangle, count)
            yield f"strips {label} {count}", Case(make, (m, k, n), "float32", layout, triangle)


def _letters(columns: tuple[bool, bool, bool]) -> str:
    return "".join("C" if column else "R" for column in columns)


def operands(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """A and B of a case: the same numbers on every machine."""
    rng = np.random.default_rng(sum(p * size for p, size in zip((1, 7, 49), case.sizes, strict=True)))
    m, k, n = case.sizes

    def drawn(shape: tuple[int, int]) -> np.ndarray:
        whole = rng.integers(-(1 << 20), 1 << 20, (2, *shape))
        if case.dtype == "int8":
            return (whole[0] % 5 - 2).astype(np.int8)
        if case.dtype.startswith("int"):
            return whole[0].astype(case.dtype)
        real = whole / (1 << 20)
        return (real[0] + 1j * real[1] if case.dtype.startswith("complex") else real[0]).astype(case.dtype)

    a = drawn((m, k))
    shared = case.garbage is not None and case.garbage.shared
    b = a.T if shared else drawn((k, n))
    if case.garbage is not None and case.garbage.side != "out" and not case.dtype.startswith("int"):
        spoiled = {"left": a, "right": b}[case.garbage.side]
        outside = ~np.tri(len(spoiled), dtype=bool)
        spoiled[outside.T if case.garbage.upper else outside] = np.nan
    first, second, _ = case.by_columns
    a = np.asarray(a, order="F" if first else "C")
    return a, a.T if shared else np.asarray(b, order="F" if second else "C")


def record(case: Case, threads: int) -> dict[str, Any]:
    """Return the record: the sha256 of C and of the stages, and the workspace."""
    core = case.make(case.sizes, case.dtype, case.by_columns)
    if hasattr(core, "compile"):
        core.compile()
    a, b = operands(case)
    m, _, n = case.sizes
    dtype = np.int32 if case.dtype == "int8" else a.dtype
    out = np.empty((m, n), dtype, order="F" if case.by_columns[2] else "C")
    is_integer = case.dtype.startswith("int")
    out.view(np.uint8 if is_integer else dtype)[...] = 0x7F if is_integer else np.nan
    workspace = core.workspace(threads)
    with Pool(poison=True).take(workspace) as arena:
        core.run(a, b, out, arena, threads)
    stages = repr([(stage.name, stage.flops, stage.bytes, stage.product) for stage in core.stages(3)])
    # -0.0 and 0.0 are told apart by the bits; of NaN there must be none.
    assert not np.isnan(out).any()
    return {
        "c": hashlib.sha256(np.ascontiguousarray(out).tobytes()).hexdigest()[:32],
        "stages": hashlib.sha256(stages.encode()).hexdigest()[:32],
        "workspace": workspace,
    }


def multiply_in_order(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """a b, every element summed in the order of the inner index; real arithmetic only, for complex numbers too."""
    if a.dtype.kind == "c":
        real = multiply_in_order(a.real, b.real) - multiply_in_order(a.imag, b.imag)
        total = real + 1j * (multiply_in_order(a.real, b.imag) + multiply_in_order(a.imag, b.real))
    else:
        total = np.zeros((a.shape[0], b.shape[1]), a.dtype)
        for i in range(a.shape[1]):
            total += a[:, i : i + 1] * b[i]
    if out is None:
        return total
    out[...] = total
    return out


def main(arguments: list[str]) -> None:
    if "--blas" not in arguments:
        np.matmul = multiply_in_order  # type: ignore[assignment]
    found = {}
    for name, case in cases():
        one, two = record(case, 1), record(case, 2)
        if "--blas" not in arguments:
            assert (one["c"], one["stages"]) == (two["c"], two["stages"]), name
        found[name] = [one["c"], one["stages"], one["workspace"], two["workspace"]]
        if "--blas" in arguments:
            found[name].append(two["c"])
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in found.items())
    print(f"{{\n{lines}\n}}")


if __name__ == "__main__":
    main(sys.argv[1:])
