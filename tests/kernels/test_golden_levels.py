"""The CPU level executors keep their bits, their workspace and their predicted stages: golden/levels.json.

`python tests/kernels/test_golden_levels.py` prints the record of the cases whose names it has. Products of blocks are
summed in a fixed order by `multiply_in_order`, so that the bits depend on the order of this package's own arithmetic
and on no BLAS. With `--blas` they are numpy's own: such a record compares two checkouts on one machine.
"""

import hashlib
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
from lcma.schemes_db.symmetry import Triangle, triangle_of

RECORD = Path(__file__).parent / "golden" / "levels.json"
"""The cases are its names: the method, the schemes or the structure, the sizes, the dtype, and rows or columns."""

METHODS = {"batch": CpuMethod(), "tasks": CpuMethod(tasks=True), "grouped": CpuMethod(grouped=True)}
METHODS |= dict.fromkeys(("loop", "int8"), CpuMethod(loop=True))
MASK = "3x2x3:blocks(F./FF/.F,F.F/FFF,F../FL./.FF)"
NAME = re.compile(r"(\w+) (.+) \(([\d, ]+)\)(?: ([a-z]+\d+))?(?: ([RC]{3}))?")
STRIPS = re.compile(r"strips (\S+) ([RC]{3}) (\d)")


@dataclass(frozen=True)
class Case:
    """An executor, made for sizes and a dtype, and the product that it runs.

    `garbage`: NaN outside the triangle of an operand.
    """

    make: Callable[..., Any]
    sizes: tuple[int, int, int]
    dtype: str = "float32"
    by_columns: tuple[bool, bool, bool] = (False, False, False)
    garbage: Triangle | None = None


def nested(*names: str) -> Program:
    """The program of schemes by level, outermost first."""
    head, *below = (program_of(resolve(name)[0]) for name in names)
    for program in below:
        head = head.nested({ProductKind.FULL: program})
    return head


def structured(form: str) -> Program:
    """The classical program of a structure, for triangles with Strassen's for its full products."""
    if form == "mask":
        return program_of(naive(parse_target(MASK)))
    return program_of(naive(parse_target(f"2x2x2:{form}"))).nested({ProductKind.FULL: nested("strassen")})


def triangle(label: str) -> Triangle:
    side, *more = label.split(":")
    return Triangle(side, "upper" in more, "shared" in more)


def read(name: str) -> Case:
    """The case of a name."""
    if found := STRIPS.fullmatch(name):
        label, letters, count = found.groups()
        m, k, n = {"o": (90, 41, 90), "l": (90, 90, 41), "r": (41, 90, 90)}[label[0]]
        of = triangle(label)
        return Case(partial(HalfProduct, of, strips=int(count)), (m, k, n), "float32", columns(letters), of)
    how, of, sizes, dtype, letters = NAME.fullmatch(name).groups()
    given = tuple(map(int, sizes.split(", "))), dtype or "float32", columns(letters or "RRR")
    level = partial(Level, by_columns=given[2], method=METHODS[how])
    if how == "int8":
        return Case(Leaf if of == "none" else partial(level, nested(*of.split(" * "))), given[0], "int8")
    if how == "grouped":
        scheme, label = of.split(" ")
        program = TriangularSource(scheme, triangle(label)).program
        if scheme == "2x2x2-tri-left-r6":  # with a level below for its full products
            program = program.nested({ProductKind.FULL: nested("strassen")})
        return Case(partial(level, program), *given, triangle(label))
    program = structured(of) if of == "mask" or of.startswith("tri-") else nested(*of.split(" * "))
    return Case(partial(level, program), *given, triangle_of(program.target))


def columns(letters: str) -> tuple[bool, bool, bool]:
    return tuple(letter == "C" for letter in letters)


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


def run(case: Case, threads: int) -> tuple[str, str, int]:
    """Return the sha256 of C and of the stages, and the workspace."""
    core = case.make(sizes=case.sizes, dtype=case.dtype)
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
    # Bits distinguish -0.0 from 0.0; there must be no NaN.
    assert not np.isnan(out).any()
    c, said = (hashlib.sha256(text).hexdigest()[:32] for text in (np.ascontiguousarray(out).tobytes(), stages.encode()))
    return c, said, workspace


def record(name: str) -> list[Any]:
    """Return the record of a case: of C and the stages, the workspace on one thread and on two, and C on two."""
    (c, stages, workspace), (other_c, other_stages, other_workspace) = (run(read(name), threads) for threads in (1, 2))
    assert other_stages == stages, name
    return [c, stages, workspace, other_workspace, other_c]


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


WANTED = json.loads(RECORD.read_text(encoding="utf-8"))


def is_quick(name: str) -> bool:
    """Return whether the kernels of a case are few and small: compiling them is most of the time."""
    return (
        name.startswith(("int8 ", "strips ", "grouped 2x2x2-tri-left-r6 left ")) or " strassen * strassen (35" in name
    )


@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_results_workspace_and_stages_are_those_of_the_record(monkeypatch, quick):
    monkeypatch.setattr(np, "matmul", multiply_in_order)
    assert len(WANTED) == 256
    names = [name for name in WANTED if is_quick(name) == quick]
    assert [name for name in names if record(name) != [*WANTED[name], WANTED[name][0]]] == []


if __name__ == "__main__":
    if "--blas" not in sys.argv:
        np.matmul = multiply_in_order  # type: ignore[assignment]
    found = {name: record(name) for name in WANTED}
    if "--blas" not in sys.argv:
        assert [name for name, (c, *_, other) in found.items() if c != other] == []
        found = {name: values[:-1] for name, values in found.items()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in found.items())
    print(f"{{\n{lines}\n}}")
