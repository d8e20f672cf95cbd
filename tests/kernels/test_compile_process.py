"""The process that compiles candidates: it ends, hangs, stands still, and finds what a request needs."""

import os
import pickle
import subprocess
import time

from lcma.kernels import compile_process, machine_for
from lcma.kernels.compile_process import CompileProcess
from lcma.kernels.factored import factored_request
from lcma.kernels.request import Request
from lcma.kernels.structured.chain import KroneckerSparse
from lcma.kernels.structured.pattern import Pattern

SIZES = 656, 648, 664


def test_the_process_stands_still_while_something_is_timed():
    process = CompileProcess()
    process._process = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process.stopped():
        assert os.WIFSTOPPED(os.waitpid(process._process.pid, os.WUNTRACED)[1])
    assert os.WIFCONTINUED(os.waitpid(process._process.pid, os.WCONTINUED)[1])
    process.close()
    with process.stopped():  # and where there is none, nothing happens
        pass


def test_the_process_itself_ends_and_is_started_again(settled_home):
    process = CompileProcess()
    machine = machine_for(Request(*SIZES))
    first = next(iter(process.candidates(Request(*SIZES), machine)))
    assert first[0][1] == "scheme"
    assert first[1] > 0
    process._process.kill()
    process._process.wait()
    assert list(process.candidates(Request(*SIZES), machine)) == []
    assert next(iter(process.candidates(Request(*SIZES), machine)))[0] == first[0]
    process.close()


def test_a_process_that_hangs_is_ended(settled_home, monkeypatch):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    monkeypatch.setattr(compile_process, "LONGEST_SILENCE", 0.2)
    monkeypatch.setattr(compile_process, "_started", lambda: subprocess.Popen(["sleep", "60"], **pipes))
    process, began = CompileProcess(), time.monotonic()
    assert list(process.candidates(Request(*SIZES), machine_for(Request(*SIZES)))) == []
    assert time.monotonic() - began < 30
    assert process._process is None


def test_the_process_finds_candidates_of_products_by_factors(settled_home):
    structure = KroneckerSparse.of(Pattern(1, 96, 48, 5))
    request = factored_request(structure, 1024)
    assert pickle.loads(pickle.dumps(request)).structures[1] is request.structures[1]
    process = CompileProcess()
    found = next(iter(process.candidates(request, machine_for(request))))
    process.close()
    assert found[0][:2] == ("structured", "slabs")
