"""The strategies for GPUs: three stages, with the products in one batched call or in a loop."""

from __future__ import annotations

from ...errors import PlanError
from ...schemes_db.program import Program
from ...schemes_db.target import Target
from ..cpu.workspace import Pool
from ..cuda.cost_model import timed
from ..cuda.dtypes import itemsize
from ..cuda.executor import TensorExecutor
from ..cuda.flat_program import reason_against
from ..cuda.level import Method, cuda_level
from ..cuda.shape import MAX_PIECES, Shape
from ..cuda.stack import DTYPES, TILE, fits_stack
from ..planning.profile import Profile
from ..planning.strategy import Executor, Stage, unfit
from ..request import Request


class ThreeStageStrategy:
    """Sums of A and B by a generated kernel each, the vendor's products, and a generated merge.

    Where `max_workspace` asks for it, rows (or matrices of a batch) are worked in pieces, each with
    its own sums and products; the sums of B are made once. Memory is torch's, not the pool's.
    """

    version = 1

    def __init__(self, way: Method) -> None:
        self.way, self.name = way, f"gpu-{way}"

    def can_run(self, program: Program, request: Request, profile: Profile) -> str | None:
        """See `Strategy.can_run`."""
        if program.rank == 1:
            return "a single product is the vendor's"
        if reason := unfit(program, request, "cuda"):
            return reason
        if program.inner and not program.target.is_general:
            return f"the levels of {program.target} cannot be worked in one pass: blocks of it are absent"
        if reason := reason_against(program, request.dtype):
            return reason
        if self.way is Method.STACK and (reason := self._reason_against_stack(program, request)):
            return reason
        if self._pieces(program, request) is None:
            least = Shape.of(request).stack_bytes(*self._core(program), MAX_PIECES)
            return f"needs {least} bytes of workspace, more than the {request.max_workspace} allowed"
        return None

    def predict(self, program: Program, request: Request, profile: Profile) -> list[Stage]:
        """See `Strategy.predict`. With a static B its sums are not counted: they are made once."""
        shape = Shape.of(request)
        if shape.empty:
            return []
        core = cuda_level(program, self.way)
        m, k, n = shape.blocks(core.target)
        sizes = (shape.m * shape.k, shape.k * shape.n, shape.m * shape.n)
        slabs = [count * size for count, size in zip(core.slabs, (m * k, k * n, m * n), strict=True)]
        combined = ((core.left, "sums of A"), (core.right, "sums of B"), (core.merge, "blocks of C"))
        left, right, merge = (
            Stage(
                name,
                shape.items * side.map.additions * slab // count,
                shape.items * (size + slab) * itemsize(request.dtype),
            )
            for (side, name), size, slab, count in zip(combined, sizes, slabs, core.slabs, strict=True)
        )
        count = shape.items * core.flat.rank
        moved = count * (m * k + k * n + m * n) * itemsize(request.dtype)
        products = Stage(f"{count} products {m}x{k}x{n}", count * 2 * m * k * n, moved, product=(m, k, n))
        before = [left] if request.static == "B" else [left, right]
        return timed([*before, products, merge], request.dtype, self.way, profile)

    def workspace(self, program: Program, request: Request) -> int:
        """See `Strategy.workspace`; exact where both operands are batched alike, else an upper bound."""
        shape = Shape.of(request)
        return (
            0 if shape.empty else shape.stack_bytes(*self._core(program), self._pieces(program, request) or MAX_PIECES)
        )

    def build(self, program: Program, request: Request, pool: Pool | None = None) -> Executor:
        """See `Strategy.build`. Kernels are compiled when tensors come: their strides decide which.

        Raises:
            PlanError: the request cannot be run within its workspace.
        """
        pieces = self._pieces(program, request)
        if pieces is None:
            raise PlanError(f"{request} does not fit in {request.max_workspace} bytes of workspace")
        return TensorExecutor(request, cuda_level(program, self.way), pieces)

    def _reason_against_stack(self, program: Program, request: Request) -> str | None:
        core, shape = cuda_level(program, self.way), Shape.of(request)
        m, k, _ = shape.blocks(core.target)
        if request.dtype not in DTYPES:
            return f"stacks are worked in {' and '.join(DTYPES)}, not in {request.dtype}"
        if not shape.empty and not fits_stack(core.flat.rank * shape.items, m, k, request.dtype):
            return f"blocks of {m}x{k} are no whole tiles of {TILE.m}x{TILE.k}"
        return None

    def _core(self, program: Program) -> tuple[Target, tuple[int, int, int]]:
        core = cuda_level(program, self.way)
        return core.target, core.slabs

    def _pieces(self, program: Program, request: Request) -> int | None:
        shape = Shape.of(request)
        return 1 if shape.empty else shape.pieces_within(*self._core(program), request.max_workspace)
