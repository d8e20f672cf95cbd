"""One level of a program on matrices of known sizes: sums of blocks, products, blocks of C."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import cast

from ...errors import PlanError
from ...schemes_db.program import ProductKind, Program
from ...schemes_db.symmetry import Triangle
from ..arrays import Matrix, Sizes
from ..planning.strategy import PreparedOperand, Stage
from ..request import Layout, Request
from .executor import PreparingCore
from .grouped import Groups
from .leaf import Leaf
from .partition import CpuMethod, Partition
from .stores import Batch, Buffers, Form, Slabs
from .threads import blas_is_limited, parallel_tasks, single_threaded_blas
from .triangular_products import BASE, MOST_TASK_STRIPS, HalfProduct, leaf_strips, strip_count
from .workspace import Arena

ByColumns = tuple[bool, bool, bool]


class Level(PreparingCore):
    """A program level, and all levels below it.

    The method selects how sums and products are stored (`Slabs`, `Buffers` or `Groups`), and which threads run the
    products.

    Raises:
        PlanError: a half block of the target would not be square.
    """

    def __init__(
        self, program: Program, sizes: Sizes, dtype: str, by_columns: ByColumns, method: CpuMethod | None = None
    ) -> None:
        self.method = method = CpuMethod() if method is None else method
        self.cut = cut = Partition(program, sizes, dtype, by_columns)
        store = Buffers if method.loop else Groups if method.grouped else Slabs
        self.store: Buffers | Groups | Slabs = store(cut)
        self._inner = dict(program.inner)
        self._cores = {form: self._core(*form) for form in set(self.store.forms)}
        self._core_of = [self._cores[form] for form in self.store.forms]

    def _core(self, kind: ProductKind, length: int) -> Level | Leaf | HalfProduct:
        bm, bk, bn = self.cut.block
        sizes, dtype, method = (bm, length * bk, bn), self.cut.dtype, self.method
        if kind in self._inner:
            program = self._inner[kind]
            return Level(program, sizes, dtype, self.cut.by_columns, method.below(program))
        if not kind.half:
            return Leaf(sizes, dtype, method.blas, method.tasks)
        triangle = Triangle(kind.side, kind.of_upper)
        size = bn if kind.side == "right" else bm
        halved = method.grouped and kind.side == "out"
        strips = 1 if halved else strip_count(size, MOST_TASK_STRIPS) if method.grouped else leaf_strips(size)
        base, blas = BASE if halved else None, method.blas
        return HalfProduct(triangle, sizes, dtype, strips, base, clean=False, blas=blas, shared=method.tasks)

    def workspace(self, threads: int) -> int:
        below = max(core.workspace(threads) for core in self._cores.values())
        if threads > 1:
            below = max(below, threads * self._task_bytes)
        return self.store.workspace + below

    @property
    def _task_bytes(self) -> int:
        """The most bytes that a product run by a single thread takes from the arena."""
        if self.method.tasks:
            return max(core.workspace(1) for core in self._cores.values())
        return 0  # in grouped levels only leaves run so, which need no memory

    def compile(self) -> None:
        for bound in self.store.maps:
            bound.compile()
        for core in self._cores.values():
            core.compile()

    def run(
        self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1, right: PreparedOperand | None = None
    ) -> None:
        """See `Core.run`. `right` is the result of `prepare`; if given, b is not read."""
        operands, inner = (None, None) if right is None else right.sums
        for batch in self.store.batches(a, b, out, arena, threads, operands):
            self._multiply(batch, arena, threads, inner)
        self.cut.clear(out)

    def prepare(self, b: Matrix, threads: int = 1) -> PreparedOperand:
        """Compute the right operands of B by product, and those of inner levels, in newly allocated memory.

        Raises:
            PlanError: the level's store is not `Slabs`: other stores hold no sums of B, or are for triangular products.
        """
        if not isinstance(self.store, Slabs):
            raise PlanError("only levels that compute all sums before the products keep those of B; use batch or tasks")
        operands, nbytes = self.store.rights(b, threads)
        inner = [
            core.prepare(operand, threads) if isinstance(core, Level) else None
            for core, operand in zip(self._core_of, operands, strict=True)
        ]
        return PreparedOperand(b, (operands, inner), nbytes + sum(below.nbytes for below in inner if below))

    def _multiply(
        self, batch: Batch, arena: Arena, threads: int, inner: Sequence[PreparedOperand | None] | None
    ) -> None:
        """Run the products of a batch: some as single-threaded tasks, the others one by one on all threads."""

        def run(i: int, memory: Arena, threads: int) -> None:
            r = batch.products[i]
            core = self._core_of[r]
            operands = batch.lefts[i], batch.rights[i], batch.results[i], memory, threads
            if isinstance(core, Level):
                core.run(*operands, inner[r] if inner is not None else None)
            else:
                core.run(*operands)

        alone = self._alone(batch.products, threads) if threads > 1 else []
        # Products that all threads share also call BLAS with one thread each.
        shared = self.method.tasks and threads > 1
        with ExitStack() as limited:
            if alone or shared:
                limited.enter_context(single_threaded_blas())
            if alone:
                memories = arena.split(threads, self._task_bytes)
                parallel_tasks(lambda i, worker: run(alone[i], memories[worker].rest(), 1), len(alone), threads)
            if not shared:
                limited.close()
            done = set(alone)
            for i in range(len(batch.products)):
                if i not in done:
                    run(i, arena.rest(), threads)

    def _alone(self, products: Sequence[int], threads: int) -> list[int]:
        """Return the positions in a batch of the products that run as tasks, in starting order."""
        if self.method.tasks:
            # A remainder smaller than the number of threads is run by all threads together, or most of them would idle.
            return list(range(len(products) // threads * threads))
        if not self.method.grouped:
            return []
        forms: list[Form] = [self.store.forms[r] for r in products]
        leaves = [i for i, (kind, _) in enumerate(forms) if kind not in self._inner]
        # Longest first, so that the last task to finish is short.
        leaves.sort(key=lambda i: -cast("Leaf | HalfProduct", self._cores[forms[i]]).flops)
        return leaves if len(leaves) >= threads and blas_is_limited() else []

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        first, *others, last = (
            Stage(stage.name, times * stage.flops, times * stage.bytes) for stage in self.store.stages()
        )
        bm, bk, bn = self.cut.block
        products: list[Stage] = []
        for form, core in sorted(self._cores.items(), key=lambda item: item[0]):
            count = times * sum(found == form for found in self.store.forms)
            if isinstance(core, Level):
                products += core.stages(count, prepared)
                continue
            kind, length = form
            m, k, n = sizes = bm, length * bk, bn
            moved = sum(x * y.storage.itemsize for x, y in zip((m * k, k * n, m * n), self.cut.grids, strict=True))
            name = f"{count} {kind.value} products {m}x{k}x{n}"
            products.append(Stage(name, count * core.flops, count * moved, product=sizes))
        return [first, *([] if prepared else others), *products, last]


def core_of(program: Program, request: Request, method: CpuMethod | None = None) -> Level:
    """Return the core of the program on one matrix of a request; a SCATTERED matrix is assumed copied by rows."""
    first, second, third = (layout is Layout.COLUMNS for layout in request.layouts)
    return Level(program, request.shape, request.dtype, (first, second, third), method)
