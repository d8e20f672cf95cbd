"""Plans and executors for an H200, which need not be here."""

import subprocess
from pathlib import Path
from typing import Any

import lcma
from lcma.kernels import Candidate, Machine, Profile, Request, strategies
from lcma.kernels.cuda.cost_model import CudaCostModel
from lcma.kernels.cuda.estimate import h200
from lcma.kernels.dense.arrangements import GivenProgram, arrangements, levels_of
from lcma.kernels.planning.planner import Decision, decide
from lcma.kernels.precision import fields_of
from lcma.workbench.bench.journal import Journal


def gpu_machine(profile: Profile) -> Machine:
    """A GPU with this profile."""
    return Machine("cuda", profile, CudaCostModel(profile))


H200 = gpu_machine(h200())
SCHEME = strategies("cuda")["dense", "scheme"]


def program(*names: str) -> Any:
    """The straight-line program of the schemes of all levels, outermost first."""
    return arrangements(levels_of([lcma.resolve(name)[0] for name in names], 1))[0][1]


def candidate(*names: str, method: str = "batched") -> Candidate:
    """A product by the schemes of all levels, outermost first."""
    return Candidate("dense", "scheme", GivenProgram("/".join(names), program(*names)), (("method", method),))


def decision(dtype: str, *sizes: int, strategy: str | None = None, **fields: Any) -> Decision:
    """The plan for an H200; one size is that of all three sides. `dtype` may name a precision."""
    m, k, n = sizes * 3 if len(sizes) == 1 else sizes
    request = Request(m, k, n, **fields_of(dtype), device="cuda", **fields)
    return decide(request, H200, strategies("cuda"), strategy)


def blank(*shape: int, dtype: str = "float32", by_columns: bool = False) -> Any:
    """A tensor without data, stored by rows or by columns."""
    import torch

    made = torch.empty(*shape, dtype=getattr(torch, dtype), device="meta")
    return made.mT.contiguous().mT if by_columns else made


def measured_rows(name: str) -> list[dict[str, Any]]:
    """The rows of a file in docs/results."""
    return Journal(Path(lcma.__file__).parent / "docs" / "results" / name).rows()


def resources(cubin: bytes, folder: Path) -> str:
    """What the assembler reports of a compiled kernel: registers and bytes of stack of a thread."""
    import triton

    tool, path = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump", folder / "kernel.cubin"
    path.write_bytes(cubin)
    return subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True).stdout
