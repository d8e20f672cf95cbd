"""Recording the kernels of a plan imports little: torch's compiler and sympy take seconds and Python's lock."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

PROGRAM = """
import sys
from lcma.kernels import machine_for, strategies
from lcma.kernels.cuda import bench, precompile
from lcma.kernels.cuda.precompile_worker import OfflineDriver
from lcma.kernels.dense.pool import OrientedScheme
from lcma.kernels.planning.planner import plan_candidate
from lcma.kernels.request import Request
import lcma

OfflineDriver.activate("cuda", 90, 32)
request = Request(512, 512, 512, "float64", device="cuda")
strategy = strategies("cuda")["dense", "scheme"]
source = OrientedScheme.of(lcma.resolve("strassen")[0], "mkn").name
candidate = strategy.restore(source, (("method", "batched"),), request)
plan = plan_candidate(strategy, candidate, request, machine_for(request, measure=False))
events = []
precompile.compile_ahead = bench.compile_ahead = lambda calls, progress: events.extend(precompile.kernels_of(calls))
bench.CudaBench().precompile([plan], print)
print(len(events), "sympy" in sys.modules, "torch._dynamo" in sys.modules)
"""


@pytest.mark.slow
def test_recording_imports_neither_sympy_nor_the_compiler_of_torch(home, tmp_path):
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}  # kernels that are there already are not recorded
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["3", "False", "False"], done.stderr
