"""The text of a Triton module that executes a linear map between blocks of a matrix and the slabs of a stack."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from ...schemes_db.grids import Kind
from ...schemes_db.program import Coefficient, Terms
from .maps import Block, LinearMap
from .modules import load
from .order import Accumulate, Fetch, Keep, Step, Take, steps

MOST_TURNS = 31
"""Maximum number of products of the loop's level: their coefficients of one block are in one integer of 64 bits."""


@dataclass(frozen=True)
class Nest:
    """A map as two levels, one of which is a loop.

    `coefficients[r][o]`, each -1, 0 or 1, is that of block o of the loop's level in its product r. `body` is the map of
    the other level, `places[o][i]` the index in the whole map of its block i within block o: a source (to_stack) or a
    result (merge). Slab s of the body in turn t of the loop is slab s * `slab_step` + t * `turn_step` of the whole map.
    """

    coefficients: tuple[tuple[int, ...], ...]
    body: LinearMap
    places: tuple[tuple[int, ...], ...]
    slab_step: int
    turn_step: int


class Direction(StrEnum):
    """The direction of a map: from the blocks of a matrix to a stack, or from a stack to the blocks."""

    TO_STACK = "split"
    FROM_STACK = "merge"


class Scale(StrEnum):
    """The powers of two that multiply the matrix: none, one per row, one per column, or both."""

    NONE = ""
    ROWS = "rows"
    COLS = "cols"
    BOTH = "both"

    @property
    def mirrored(self) -> Scale:
        """The scale of the transposed matrix."""
        return {Scale.ROWS: Scale.COLS, Scale.COLS: Scale.ROWS}.get(self, self)


MANY = 100
"""Number of results from which stores bypass the cache: on an H200 343 results are written 2% faster that way."""


@dataclass(frozen=True)
class Combine:
    """The specification of a combine kernel: every block of the matrix is read (or written) once, and so is every slab.

    `blocks` are the positions in the matrix of the map's sources (or results), `kinds` their kinds: the other triangle
    of a half block is not read and counts as zero, or is written as zeros, like the block of a result without terms.
    `slabs` are the kinds of the slabs that are read. No kinds: all are full. `double` adds in float64, else in float32.
    `ahead`: number of sources loaded in advance of the current one. `scale`: the matrix is multiplied by powers of two
    when it is read, and divided by them when it is written. `halves`: a written slab is stored as two in float16 whose
    sum it is; the second ones follow all the first ones. All blocks are whole then. `integers`: adds in int32, modulo
    2^32, and stores the lowest bits; all coefficients are integers then. `nest`: the map as two levels, for a loop over
    the outer one; only where slabs are full.
    """

    map: LinearMap
    direction: Direction
    blocks: tuple[Block, ...]
    kinds: tuple[Kind, ...] = ()
    double: bool = False
    ahead: int = 0
    slabs: tuple[Kind, ...] = ()
    scale: Scale = Scale.NONE
    halves: bool = False
    integers: bool = False
    nest: Nest | None = None

    @property
    def real(self) -> str:
        """The dtype of sums."""
        return "int32" if self.integers else "float64" if self.double else "float32"

    @property
    def zero(self) -> str:
        """The literal of zero in it."""
        return "0" if self.integers else "0.0"

    @property
    def imports(self) -> str:
        """The lines that import the functions of a kernel."""
        return "from lcma.kernels.codegen.triton_parts import times_power\n" if self.scale else ""

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of the tensors of a kernel besides matrix and stack."""
        return ("row_shifts", "col_shifts") * bool(self.scale)


BY_ROWS, BY_COLUMNS, STRIDED = 0, 1, 2
"""The direction in which matrix and slabs are contiguous."""

_HEAD = '''\
"""{direction}: {sources} sources, {results} results, {additions} additions, {real}."""

import triton
import triton.language as tl
{imports}

# One compiled form for all sizes: no number is specialised; what decides how wide accesses are is constexpr.
@triton.jit(do_not_specialize={unspecialised})
def combine(
    matrix,
    stack,
{parameters}):
    tile = tl.program_id(0)
    item = tl.program_id(1).to(tl.int64)
    near_row = (tile // tiles) * ROWS + tl.arange(0, ROWS)[:, None]
    near_col = (tile % tiles) * COLS + tl.arange(0, COLS)[None, :]
    row, col = near_row.to(tl.int64), near_col.to(tl.int64)
    # The product with VECTOR is what the compiler knows of alignment. All steps between blocks and slabs are 64 bits
    # wide: a product of two arguments may not fit in 32.
    zero = item * 0
    ROW_UNIT: tl.constexpr = 1 if SLABS == 0 else VECTOR
    high, wide, slab = (zero + height) * ROW_UNIT, (zero + width) * VECTOR, (zero + slab_stride) * VECTOR
    row_step = (zero + row_stride) * VECTOR
    col_step = 1 if MATRIX == 0 else zero + col_stride
    down, across = high * row_step, wide * col_step
    at = matrix + item * (item_stride * VECTOR) + (row * row_step + col * col_step)
    slab_row_step = 1 if SLABS == 1 else (zero + slab_row) * VECTOR
    slab_col_step = 1 if SLABS == 0 else (zero + slab_col) * VECTOR
    on = stack + item * (stack_stride * VECTOR) + (row * slab_row_step + col * slab_col_step)
'''


@lru_cache(maxsize=512)
def combine_kernel(work: Combine) -> Any:
    """Return the Triton kernel of a combination (see `combine_text` for its arguments); equal ones share one.

    Its text is in a file named by its hash in the cache folder; Triton caches the compiled code.
    """
    return load(combine_text(work)).combine


def combine_text(work: Combine) -> str:
    """Return a self-contained module with one kernel, `combine`.

    The matrix is rows x cols, divided into blocks of height x width; slabs are height x width. A
    program computes ROWS x COLS elements of all blocks and slabs; `tiles` programs cover a row of blocks. The
    second axis of the grid counts the matrices of a batch. MATRIX and SLABS: BY_ROWS where a row is contiguous, slabs
    also BY_COLUMNS; the stride of 1 is not read then; else STRIDED. Sizes and strides are in units of VECTOR elements,
    except rows and height if SLABS is BY_ROWS, and col_stride.
    """
    lines = ["inside = near_col < wide.to(tl.int32)"]
    # A tile of one row is never below a slab.
    lines += ["if ROWS > 1:", "    inside &= near_row < high.to(tl.int32)"]
    lines += _edges(work)
    if work.nest is None:
        lines += [_line(work, step) for step in steps(work.map, work.ahead)]
    else:
        lines += _nest_lines(work, work.nest)
    numbers = (f"{name}: tl.int{32 if name == 'tiles' else 64}" for name in NUMBERS)
    parameters = *work.tensors, *numbers, *(f"{name}: tl.constexpr" for name in FORM)
    head = _HEAD.format(
        direction=work.direction,
        sources=work.map.sources,
        results=len(work.map.results),
        additions=work.map.additions,
        real=work.real,
        imports=work.imports,
        parameters="".join(f"    {one},\n" for one in parameters),
        unspecialised=list(NUMBERS),
    )
    return head + "".join(f"    {line}\n" for line in lines)


NUMBERS = (
    *("rows", "cols", "row_stride", "col_stride", "item_stride", "height", "width"),
    *("slab_row", "slab_col", "slab_stride", "stack_stride", "tiles"),
)
"""The sizes and strides that every kernel takes, in order."""

FORM = ("ROWS", "COLS", "VECTOR", "MATRIX", "SLABS")
"""What a kernel is compiled for, besides its text and the dtypes; see `combine_text`."""


def _nest_lines(work: Combine, nest: Nest) -> list[str]:
    """Return the lines of a kernel with a loop after its head: a step is one of the whole map, or of the body."""
    to_stack, real = work.direction is Direction.TO_STACK, f"tl.{work.real}"
    # Adding to -0.0 changes no number. A coefficient of zero is skipped, not multiplied: the number may be infinite.
    blank = f"tl.zeros((ROWS, COLS), {real})" + ("" if work.integers else " * -1.0")
    blocks = range(len(nest.places))
    codes = [sum((row[o] + 1) << (2 * r) for r, row in enumerate(nest.coefficients)) for o in blocks]
    body = []
    for o, code in zip(blocks, codes, strict=True):
        body.append(f"c{o} = (((zero + {code}) >> (2 * turn)) & 3) - 1")
        body.append(f"sign{o} = tl.where(c{o} < 0, -1, 1).to({real})")
    lines = [f"blank = {blank}"]

    def added(total: str, o: int, value: str) -> str:
        return f"tl.where(c{o} != 0, {total} + sign{o} * {value}, {total})"

    def body_line(step: Step) -> list[str]:
        if to_stack and isinstance(step, Fetch):
            return []
        if to_stack and isinstance(step, Take):
            name = f"v{step.value}"
            return [f"{name} = blank"] + [
                f"{name} = {added(name, o, f's{nest.places[o][step.value]}')}" for o in blocks
            ]
        if not to_stack and isinstance(step, Keep):
            names = [f"s{nest.places[o][step.result]}" for o in blocks]
            return [f"{name} = {added(name, o, f'v{step.value}')}" for o, name in enumerate(names)]
        return [_line(work, step)]

    if to_stack:
        for source in range(work.map.sources):
            lines += [_line(work, Fetch(source)), _line(work, Take(source)), f"s{source} = v{source}"]
    else:
        lines += [f"s{result} = blank" for result in range(len(work.map.results))]
    for step in steps(nest.body, work.ahead):
        body += body_line(step)
    body.append(f"on += {nest.turn_step} * slab")
    lines += [
        f"for turn in range({len(nest.coefficients)}):",
        *("    " + line.replace("\n", "\n    ") for line in body),
    ]
    if not to_stack:
        for result in range(len(work.map.results)):
            lines += [f"v{result} = s{result}", _line(work, Keep(result, result))]
    return lines


def _edges(work: Combine) -> list[str]:
    """Return the lines for every row and column of blocks: what of it is inside the matrix, and its exponents."""
    lines = []
    for axis, name, whole, size, unit, step, scale in (
        (0, "row", "rows", "height", "ROW_UNIT", "high", Scale.ROWS),
        (1, "col", "cols", "width", "VECTOR", "wide", Scale.COLS),
    ):
        for i in sorted({block[axis] for block in work.blocks}):
            limit = f"tl.maximum(tl.minimum({whole} - {i} * {size}, {size}), 0) * {unit}"
            lines.append(f"{name}_in{i} = near_{name} < ({limit}).to(tl.int32)")
            if work.scale in (scale, Scale.BOTH):
                load = f"tl.load({name}_shifts + {i} * {step} + {name}, mask={name}_in{i}, other=0)"
                lines.append(f"{name}{i} = {load}")
    return lines


def _power(work: Combine, index: int) -> str:
    """Return the expression of the exponents that scale a block."""
    i, j = work.blocks[index]
    return {Scale.ROWS: f"row{i}", Scale.COLS: f"col{j}"}.get(work.scale, f"row{i} + col{j}")


def _line(work: Combine, step: Step) -> str:
    """Return the line of one step."""
    real = f"tl.{work.real}"
    if isinstance(step, Fetch):
        place, mask = _place(work, step.value, work.direction is Direction.TO_STACK)
        kinds = work.kinds if work.direction is Direction.TO_STACK else work.slabs
        masked = " & ".join(filter(None, (mask, _kept(kinds[step.value]) if kinds else "")))
        return f"f{step.value} = tl.load({place}, mask={masked}, other={work.zero})"
    if isinstance(step, Take):
        value = f"f{step.value}.to({real})"
        if work.scale and work.direction is Direction.TO_STACK:
            value = f"times_power({value}, {_power(work, step.value)})"
        return f"v{step.value} = {value}"
    if isinstance(step, Keep):
        place, mask = _place(work, step.result, work.direction is Direction.FROM_STACK)
        masked = f", mask={mask}"
        kept = _kept(work.kinds[step.result]) if work.kinds and work.direction is Direction.FROM_STACK else ""
        value = f"tl.where({kept}, v{step.value}, {work.zero})" if kept else f"v{step.value}"
        base = "matrix" if work.direction is Direction.FROM_STACK else "stack"
        if work.scale and work.direction is Direction.FROM_STACK:
            value = f"times_power({value}, -({_power(work, step.result)}))"
        streamed = ', cache_modifier=".cs"' if len(work.map.results) >= MANY else ""
        if work.halves:
            low = f"{place} + {len(work.map.results)} * slab"
            rest = f"({value} - {value}.to(tl.float16).to({real})).to(tl.float16)"
            first = f"tl.store({place}, {value}.to(tl.float16){masked}{streamed})"
            return f"{first}\n    tl.store({low}, {rest}{masked}{streamed})"
        return f"tl.store({place}, {value}.to({base}.dtype.element_ty){masked}{streamed})"
    if isinstance(step, Accumulate):
        begun = "" if step.first else f"v{step.value}"
        return f"v{step.value} = {_added(begun, step.coefficient, step.term, work.integers)}"
    return f"v{step.value} = {_sum(step.terms, work.integers) or f'tl.zeros((ROWS, COLS), {real})'}"


def _place(work: Combine, index: int, in_matrix: bool) -> tuple[str, str]:
    """Return the pointers of a block or slab, and the mask of the elements inside."""
    if not in_matrix:
        return f"on + {index * (work.nest.slab_step if work.nest else 1)} * slab", "inside"
    i, j = work.blocks[index]
    return f"at + ({i} * down + {j} * across)", f"row_in{i} & col_in{j}"


def _kept(kind: Kind) -> str:
    """Return the mask of the elements of this kind of block or slab that are not zero ("": all)."""
    return {Kind.LOWER: "(row >= col)", Kind.UPPER: "(row <= col)"}.get(kind, "")


def _sum(terms: Terms, integers: bool) -> str:
    total = ""
    # A plain term first saves a negation.
    for coefficient, src in sorted(terms, key=lambda term: term[0] != 1):
        total = _added(total, coefficient, src, integers)
    return total


def _added(total: str, coefficient: Coefficient, src: int, integers: bool) -> str:
    size = abs(int(coefficient) if integers else float(coefficient))
    term = f"v{src}" if size == 1 else f"{size!r} * v{src}"
    if not total:
        return f"-{term}" if coefficient < 0 else term
    return f"{total} {'-' if coefficient < 0 else '+'} {term}"
