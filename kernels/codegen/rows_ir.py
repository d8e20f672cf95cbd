"""The LLVM module of a linear map between blocks of matrices: one function, `rows`, that computes rows of all blocks.

A segment of a row is computed by straight-line code on vectors as wide as the processor's registers, in
which the sums stay in registers and every result is stored once, as soon as it is computed. Plain
loops would leave the vectoriser to prove that dozens of pointers do not overlap, which it does not attempt.
The module is emitted with llvmlite alone: importing numba and compiling by it takes four times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from llvmlite import ir

from ...errors import PlanError
from ...schemes_db.grids import Kind
from ...schemes_db.program import Coefficient
from ..dtypes import dtype_of
from .host import Host
from .maps import LinearMap
from .order import Keep, Take, schedule

ELEMENTS = {
    "float32": (ir.FloatType(), 4),
    "float64": (ir.DoubleType(), 8),
    "int8": (ir.IntType(8), 1),
    "int32": (ir.IntType(32), 4),
    "int64": (ir.IntType(64), 8),
    "bfloat16": (ir.IntType(16), 2),
}
"""LLVM's type of a component, and its bytes."""


class VectorArithmetic:
    """Emits sums of multiples of one element type, a scalar or a vector of `lanes`.

    bfloat16 is computed in float32, of which it is the upper 16 bits.
    """

    def __init__(self, builder: Any, dtype: str, lanes: int) -> None:
        self.builder, self.lanes = builder, lanes
        self.half = dtype == "bfloat16"
        self.stored = self._wide(ELEMENTS[dtype][0])
        self.type = self._wide(ir.FloatType()) if self.half else self.stored
        self.bits = 8 * ELEMENTS[dtype][1]
        self.floating = not dtype.startswith("int")

    def _wide(self, element: Any) -> Any:
        return ir.VectorType(element, self.lanes) if self.lanes > 1 else element

    def _fill(self, kind: Any, value: float) -> Any:
        return ir.Constant(kind, [value] * self.lanes if self.lanes > 1 else value)

    def constant(self, value: float) -> Any:
        if not self.floating:
            half = 1 << (self.bits - 1)
            value = (int(value) + half) % (2 * half) - half
        return self._fill(self.type, value)

    def widened(self, value: Any) -> Any:
        """Convert a loaded value to the type of the arithmetic."""
        if not self.half:
            return value
        bits = self._wide(ir.IntType(32))
        shifted = self.builder.shl(self.builder.zext(value, bits), self._fill(bits, 16))
        return self.builder.bitcast(shifted, self.type)

    def narrowed(self, value: Any) -> Any:
        """Convert a value to the stored type: bfloat16 is rounded to nearest, ties to even; NaN stays NaN."""
        if not self.half:
            return value
        builder, bits = self.builder, self._wide(ir.IntType(32))
        raw = builder.bitcast(value, bits)
        odd = builder.and_(builder.lshr(raw, self._fill(bits, 16)), self._fill(bits, 1))
        rounded = builder.add(raw, builder.add(odd, self._fill(bits, 0x7FFF)))
        quiet = builder.or_(raw, self._fill(bits, 0x400000))
        kept = builder.select(builder.fcmp_unordered("uno", value, value), quiet, rounded)
        return builder.trunc(builder.lshr(kept, self._fill(bits, 16)), self.stored)

    def scaled(self, coefficient: float, value: Any) -> Any:
        if coefficient == 1:
            return value
        if self.floating:
            return self.builder.fmul(self.constant(coefficient), value, flags=("contract",))
        return self.builder.mul(self.constant(coefficient), value)

    def lin(self, *terms: tuple[float, Any]) -> Any:
        """Emit the sum of coefficient times value; a term with coefficient 1 is first, which saves a negation."""
        ordered = sorted(terms, key=lambda term: term[0] != 1)
        total = self.scaled(*ordered[0])
        for coefficient, value in ordered[1:]:
            minus = coefficient == -1
            addend = value if minus else self.scaled(coefficient, value)
            if self.floating:
                operation = self.builder.fsub if minus else self.builder.fadd
                total = operation(total, addend, flags=("contract",))
            else:
                total = (self.builder.sub if minus else self.builder.add)(total, addend)
        return total


SPARE_REGISTERS = 4
"""Registers reserved for the partial sums of the current step."""

INDEX = ir.IntType(64)
PARAMETERS = ("blocks", "zeros", "trash", "width", "streaming", "first", "last")
"""The parameters of the function, all of int64."""

ADDRESS, STRIDE, KIND, ROWS, COLUMNS = range(5)
"""The columns of the table of blocks."""


def rows_module(linear: LinearMap, dtype: str, machine: Host) -> ir.Module:
    """Return the module of a map. Its function rows(blocks, zeros, trash, width, streaming, first, last)
    computes block rows first <= row < last.

    `blocks` is the address of a table of int64 with a row for every block, the sources and then the targets: its
    address, row stride in bytes, kind, rows and columns. A block of kind LOWER has columns 0 <= c <= row only, UPPER
    columns c >= row. Elements outside of a source, up to `width`, are read from `zeros`, the address of a row of
    zeros, and elements outside of a target are written to `trash`, a row that nobody reads; the missing triangle of a
    target inside its bounds is zeroed. `streaming` != 0 requests stores that bypass the caches; they are used where
    all targets are aligned to a vector.

    Raises:
        PlanError: a coefficient is a fraction and the dtype is of integers.
    """
    module = ir.Module("rows")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [INDEX] * len(PARAMETERS)), "rows")
    for argument, name in zip(function.args, PARAMETERS, strict=True):
        argument.name = name
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    _Rows(builder, linear, dtype, machine).emit(dict(zip(PARAMETERS, function.args, strict=True)))
    builder.ret_void()
    return module


def _coefficient(value: Coefficient, dtype: str) -> int | float:
    if value == int(value):
        return int(value)
    if dtype_of(dtype).exact:
        raise PlanError(f"coefficient {value} is not an integer: an {dtype} product needs a scheme over Z")
    assert isinstance(value, Fraction)  # a coefficient that is no integer is a Fraction
    return float(value)


@dataclass(frozen=True)
class _Variable:
    """An int64 on the stack of the function; LLVM keeps it in a register."""

    builder: ir.IRBuilder
    place: Any

    def get(self) -> Any:
        return self.builder.load(self.place, typ=INDEX)

    def set(self, value: Any) -> None:
        self.builder.store(value, self.place)


class _Rows:
    """Emits the function of one map. Comments give the equivalent lines of a plain loop."""

    def __init__(self, builder: ir.IRBuilder, linear: LinearMap, dtype: str, machine: Host) -> None:
        kind = dtype_of(dtype)
        self._builder, self._component = builder, kind.component
        self._size, self._parts = kind.numpy.itemsize, kind.parts
        self._sources, self._blocks = linear.sources, linear.sources + len(linear.results)
        self._vector_bytes = machine.vector_bytes
        self._lanes = machine.vector_bytes // ELEMENTS[kind.component][1]
        sums = (*linear.lins, *linear.results)
        self._sums = [[(_coefficient(coefficient, dtype), src) for coefficient, src in terms] for terms in sums]
        self._steps = schedule(linear, machine.registers - SPARE_REGISTERS)

    def _number(self, value: int) -> Any:
        return ir.Constant(INDEX, value)

    def _variable(self, name: str, value: Any) -> _Variable:
        with self._builder.goto_entry_block():
            place = self._builder.alloca(INDEX, name=name)
        variable = _Variable(self._builder, place)
        variable.set(value)
        return variable

    @contextmanager
    def _while(self, index: _Variable, last: Any) -> Iterator[None]:
        """while index < last"""
        builder = self._builder
        test, inside, after = (builder.append_basic_block(name) for name in ("test", "inside", "after"))
        builder.branch(test)
        builder.position_at_end(test)
        builder.cbranch(self._is("<", index.get(), last), inside, after)
        builder.position_at_end(inside)
        yield
        builder.branch(test)
        builder.position_at_end(after)

    @contextmanager
    def _range(self, first: Any, last: Any, step: int = 1) -> Iterator[Any]:
        """for index in range(first, last, step)"""
        index = self._variable("index", first)
        with self._while(index, last):
            yield index.get()
            index.set(self._builder.add(index.get(), self._number(step)))

    def _element(self, array: Any, index: Any) -> Any:
        """array[index], of int64"""
        return self._builder.load(self._place(array, index), typ=INDEX)

    def _place(self, array: Any, index: Any) -> Any:
        return self._builder.gep(array, [index], source_etype=INDEX)

    def _of(self, block: Any, column: int) -> Any:
        """blocks[block, column]"""
        at = self._builder.add(self._builder.mul(block, self._number(COLUMNS + 1)), self._number(column))
        return self._element(self._blocks_at, at)

    def _is(self, comparison: str, left: Any, right: Any) -> Any:
        return self._builder.icmp_signed(comparison, left, right)

    def _line(self, block: Any, row: Any) -> Any:
        """The address of a row of a block."""
        builder = self._builder
        return builder.add(self._of(block, ADDRESS), builder.mul(row, self._of(block, STRIDE)))

    def _triangles(self, block: Any) -> tuple[Any, Any]:
        """Whether a block is LOWER, and whether it is UPPER."""
        kind = self._of(block, KIND)
        return self._is("==", kind, self._number(Kind.LOWER)), self._is("==", kind, self._number(Kind.UPPER))

    def emit(self, given: dict[str, Any]) -> None:
        """Emit the function with these parameters."""
        self._given = given
        builder, blocks = self._builder, self._number(self._blocks)
        self._blocks_at = builder.inttoptr(given["blocks"], INDEX.as_pointer())
        self._table = builder.alloca(INDEX, self._blocks, name="table")
        triangles, narrow = (self._variable(name, self._number(0)) for name in ("triangles", "narrow"))
        with self._range(self._number(0), blocks) as block:
            half = self._is(">=", self._of(block, KIND), self._number(Kind.LOWER))
            triangles.set(builder.or_(triangles.get(), builder.zext(half, INDEX)))
            short = self._is("<", self._of(block, COLUMNS), given["width"])
            narrow.set(builder.or_(narrow.get(), builder.zext(short, INDEX)))
        triangular, ragged = (self._is("!=", found.get(), self._number(0)) for found in (triangles, narrow))
        with self._range(given["first"], given["last"]) as row:
            self._emit_row(row, triangular, ragged)
            with builder.if_then(triangular), self._range(self._number(self._sources), blocks) as block:
                self._clear_outside(block, row)
        # Stores that bypassed the caches become visible to other threads.
        builder.fence("seq_cst")

    def _emit_row(self, row: Any, triangular: Any, ragged: Any) -> None:
        """Compute a row by segments, within which the same blocks are inside."""
        builder, width = self._builder, self._given["width"]
        start, stop = self._variable("start", self._number(0)), self._variable("stop", width)

        def end_at(edge: Any, allowed: Any = None) -> None:
            """stop = edge if start < edge < stop"""
            earlier = builder.and_(self._is("<", start.get(), edge), self._is("<", edge, stop.get()))
            wanted = earlier if allowed is None else builder.and_(earlier, allowed)
            stop.set(builder.select(wanted, edge, stop.get()))

        with self._while(start, width):
            stop.set(width)
            with builder.if_then(ragged), self._range(self._number(0), self._number(self._blocks)) as block:
                end_at(self._of(block, COLUMNS))
            after_diagonal = builder.add(row, self._number(1))
            end_at(row, triangular)
            end_at(after_diagonal, triangular)
            together = self._variable("together", self._number(0))
            with self._range(self._number(0), self._number(self._blocks)) as block:
                address = self._address(block, row, start.get(), stop.get())
                builder.store(address, self._place(self._table, block))
                is_target = self._is(">=", block, self._number(self._sources))
                together.set(builder.or_(together.get(), builder.select(is_target, address, self._number(0))))
            unaligned = builder.and_(together.get(), self._number(self._vector_bytes - 1))
            streams = builder.and_(
                self._is("!=", self._given["streaming"], self._number(0)), self._is("==", unaligned, self._number(0))
            )
            count = builder.mul(builder.sub(stop.get(), start.get()), self._number(self._parts))
            self._emit_segment(count, streams)
            start.set(stop.get())

    def _address(self, block: Any, row: Any, start: Any, stop: Any) -> Any:
        """The address of a block's segment start <= column < stop of a row; that of a spare row if it is outside."""
        builder, given = self._builder, self._given
        lower, upper = self._triangles(block)
        beyond = builder.or_(
            builder.and_(lower, self._is(">", stop, builder.add(row, self._number(1)))),
            builder.and_(upper, self._is("<", start, row)),
        )
        inside = builder.and_(self._is("<", row, self._of(block, ROWS)), self._is("<=", stop, self._of(block, COLUMNS)))
        inside = builder.and_(inside, builder.not_(beyond))
        is_source = self._is("<", block, self._number(self._sources))
        spare = builder.select(is_source, given["zeros"], given["trash"])
        own = builder.add(self._line(block, row), builder.mul(start, self._number(self._size)))
        return builder.select(inside, own, spare)

    def _clear_outside(self, block: Any, row: Any) -> None:
        """Zero the missing triangle of a target in a row that it has: columns > row (LOWER) or < row (UPPER)."""
        builder, cols = self._builder, self._of(block, COLUMNS)
        inside = self._is("<", row, self._of(block, ROWS))
        lower, upper = (builder.and_(inside, is_kind) for is_kind in self._triangles(block))
        after = builder.add(row, self._number(1))
        first = builder.select(lower, after, self._number(0))
        before = builder.select(self._is("<", row, cols), row, cols)
        last = builder.select(lower, cols, builder.select(upper, before, self._number(0)))
        size = self._number(self._size)
        with builder.if_then(self._is("<", first, last)):
            line = builder.add(self._line(block, row), builder.mul(first, size))
            place = builder.inttoptr(line, ir.IntType(8).as_pointer())
            memset = builder.module.declare_intrinsic("llvm.memset", (place.type, INDEX))
            count = builder.mul(builder.sub(last, first), size)
            builder.call(memset, [place, ir.Constant(ir.IntType(8), 0), count, ir.Constant(ir.IntType(1), 0)])

    def _emit_segment(self, count: Any, streams: Any) -> None:
        """Compute `count` components from the addresses of the table."""
        builder = self._builder
        pointers = [self._element(self._table, self._number(i)) for i in range(self._blocks)]
        whole = builder.and_(count, self._number(-self._lanes))
        with builder.if_else(streams) as (streamed, plain):
            with streamed:
                self._emit_loop(pointers, (self._number(0), whole), self._lanes, True)
            with plain:
                self._emit_loop(pointers, (self._number(0), whole), self._lanes, False)
        self._emit_loop(pointers, (whole, count), 1, False)

    def _emit_loop(self, pointers: list[Any], span: tuple[Any, Any], lanes: int, streaming: bool) -> None:
        """Emit a loop over components span[0] <= i < span[1] in steps of `lanes` that loads, combines and stores."""
        builder = self._builder
        element, size = ELEMENTS[self._component]
        with self._range(*span, lanes) as index:
            arithmetic = VectorArithmetic(builder, self._component, lanes)

            def at(pointer: Any) -> Any:
                place = builder.gep(builder.inttoptr(pointer, element.as_pointer()), [index], source_etype=element)
                return builder.bitcast(place, arithmetic.stored.as_pointer())

            def load(source: int) -> Any:
                return arithmetic.widened(builder.load(at(pointers[source]), typ=arithmetic.stored, align=size))

            def store(target: int, value: Any) -> None:
                align = lanes * size if streaming else size
                place = at(pointers[self._sources + target])
                made = builder.store(arithmetic.narrowed(value), place, align=align)
                if streaming:
                    made.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))

            values: dict[int, Any] = {}
            for step in self._steps:
                if isinstance(step, Take):
                    values[step.value] = load(step.value)
                elif isinstance(step, Keep):
                    store(step.result, values[step.value])
                else:
                    terms = self._sums[step.value - self._sources]
                    plain = len(terms) == 1 and terms[0][0] == 1
                    addends = ((coefficient, values[src]) for coefficient, src in terms)
                    values[step.value] = values[terms[0][1]] if plain else arithmetic.lin(*addends)
