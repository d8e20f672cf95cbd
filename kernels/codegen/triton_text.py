"""The text of a Triton module that executes a linear map between blocks of a matrix and the slabs of a stack."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ...schemes_db.grids import Kind
from ...schemes_db.program import Coefficient, Terms
from .maps import Block, LinearMap
from .triton_order import Accumulate, Fetch, Keep, Step, Take, steps


class Direction(StrEnum):
    """The direction of a map: SPLIT, from the blocks of a matrix to a stack, or MERGE, from a stack to the blocks."""

    SPLIT = "split"
    MERGE = "merge"


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

    `blocks` are the positions in the matrix of the map's sources (SPLIT) or results (MERGE), `kinds`
    their kinds: the other triangle of a half block is not read and counts as zero, or
    is written as zeros, like the block of a result without terms. `slabs` are the kinds of the slabs
    that are read; empty: all are full. `double` adds in float64, else in float32. `exact`: no tile extends over an
    edge, so nothing is masked. `ahead`: number of sources loaded in advance of the current
    one. `scale`: the matrix is multiplied by powers of two when it is read, and divided by them when it is
    written. `halves`: a written slab is stored as two in float16 whose sum it is; the second ones follow all the
    first ones. All blocks are whole then. `integers`: adds in int32, modulo 2^32, and stores the lowest bits; all
    coefficients are integers then.
    """

    map: LinearMap
    direction: Direction
    blocks: tuple[Block, ...]
    kinds: tuple[Kind, ...]
    double: bool = False
    exact: bool = False
    ahead: int = 0
    slabs: tuple[Kind, ...] = ()
    scale: Scale = Scale.NONE
    halves: bool = False
    integers: bool = False

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
        return "from lcma.kernels.codegen.triton_powers import times_power\n" if self.scale else ""

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of the tensors of a kernel besides matrix and stack."""
        return ("row_shifts", "col_shifts") * bool(self.scale)


_HEAD = '''\
"""{direction}: {sources} sources, {results} results, {additions} additions, {real}, {edges}."""

import triton
import triton.language as tl
{imports}

# A new number of rows or matrices must not compile anew; what decides how wide the accesses are may.
@triton.jit(do_not_specialize=["rows", "height", "tiles"])
def combine(
    matrix,
    stack,
{tensors}    rows,
    cols,
    row_stride,
    col_stride,
    item_stride,
    height,
    width,
    slab_row,
    slab_col,
    slab_stride,
    stack_stride,
    tiles,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    tile = tl.program_id(0)
    item = tl.program_id(1).to(tl.int64)
    row = (tile // tiles).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    col = (tile % tiles).to(tl.int64) * COLS + tl.arange(0, COLS)[None, :]
    # All steps between blocks and slabs are 64 bits wide: a product of two arguments may not fit in 32.
    zero = item * 0
    high, wide, slab = zero + height, zero + width, zero + slab_stride
    down, across = high * row_stride, wide * col_stride
    at = matrix + item * item_stride + row * row_stride + col * col_stride
    on = stack + item * stack_stride + row * slab_row + col * slab_col
'''


def combine_text(work: Combine) -> str:
    """Return a self-contained module with one kernel, `combine`.

    The matrix is rows x cols, divided into blocks of height x width; slabs are height x width. A
    program computes ROWS x COLS elements of all blocks and slabs; `tiles` programs cover a row of blocks. The
    second axis of the grid counts the matrices of a batch.
    """
    lines = []
    if not work.exact:
        lines.append("inside = (row < high) & (col < wide)")
    lines += _powers(work)
    lines += [_line(work, step) for step in steps(work.map, work.ahead)]
    head = _HEAD.format(
        direction=work.direction,
        sources=work.map.sources,
        results=len(work.map.results),
        additions=work.map.additions,
        real=work.real,
        edges="no edges" if work.exact else "masked edges",
        imports=work.imports,
        tensors="".join(f"    {name},\n" for name in work.tensors),
    )
    return head + "".join(f"    {line}\n" for line in lines)


def _powers(work: Combine) -> list[str]:
    """Return the lines that load the exponents of every row and column of blocks."""
    lines = []
    for axis, scale, name in ((0, Scale.ROWS, "row"), (1, Scale.COLS, "col")):
        if work.scale not in (scale, Scale.BOTH):
            continue
        side, size = ("high", "rows") if axis == 0 else ("wide", "cols")
        for i in sorted({block[axis] for block in work.blocks}):
            mask = "" if work.exact else f", mask={i} * {side} + {name} < {size}, other=0"
            lines.append(f"{name}{i} = tl.load({name}_shifts + {i} * {side} + {name}{mask})")
    return lines


def _power(work: Combine, index: int) -> str:
    """Return the expression of the exponents that scale a block."""
    i, j = work.blocks[index]
    return {Scale.ROWS: f"row{i}", Scale.COLS: f"col{j}"}.get(work.scale, f"row{i} + col{j}")


def _line(work: Combine, step: Step) -> str:
    real = f"tl.{work.real}"
    if isinstance(step, Fetch):
        place, mask = _place(work, step.value, work.direction is Direction.SPLIT)
        kinds = work.kinds if work.direction is Direction.SPLIT else work.slabs
        masked = " & ".join(filter(None, (mask, _kept(kinds[step.value]) if kinds else "")))
        return f"f{step.value} = tl.load({place}" + (f", mask={masked}, other={work.zero})" if masked else ")")
    if isinstance(step, Take):
        value = f"f{step.value}.to({real})"
        if work.scale and work.direction is Direction.SPLIT:
            value = f"times_power({value}, {_power(work, step.value)})"
        return f"v{step.value} = {value}"
    if isinstance(step, Keep):
        place, mask = _place(work, step.result, work.direction is Direction.MERGE)
        masked = f", mask={mask}" if mask else ""
        kept = _kept(work.kinds[step.result]) if work.direction is Direction.MERGE else ""
        value = f"tl.where({kept}, v{step.value}, {work.zero})" if kept else f"v{step.value}"
        base = "matrix" if work.direction is Direction.MERGE else "stack"
        if work.scale and work.direction is Direction.MERGE:
            value = f"times_power({value}, -({_power(work, step.result)}))"
        streamed = ', cache_modifier=".cs"' if len(work.map.results) >= MANY else ""
        if work.halves:
            low, _ = _place(work, step.result + len(work.map.results), False)
            rest = f"({value} - {value}.to(tl.float16).to({real})).to(tl.float16)"
            first = f"tl.store({place}, {value}.to(tl.float16){masked}{streamed})"
            return f"{first}\n    tl.store({low}, {rest}{masked}{streamed})"
        return f"tl.store({place}, {value}.to({base}.dtype.element_ty){masked}{streamed})"
    if isinstance(step, Accumulate):
        begun = "" if step.first else f"v{step.value}"
        return f"v{step.value} = {_added(begun, step.coefficient, step.term, work.integers)}"
    return f"v{step.value} = {_sum(step.terms, work.integers) or f'tl.zeros((ROWS, COLS), {real})'}"


def _place(work: Combine, index: int, in_matrix: bool) -> tuple[str, str]:
    """Return the pointers of a block or slab, and the mask of the elements inside ("": all)."""
    if not in_matrix:
        return f"on + {index} * slab", "" if work.exact else "inside"
    i, j = work.blocks[index]
    inside = "" if work.exact else f"inside & ({i} * high + row < rows) & ({j} * wide + col < cols)"
    return f"at + {i} * down + {j} * across", inside


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
