"""What surrounds launches: clocks, counters of barriers, other threads' captures, lazy views, recordings of kernels."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest
import torch

from lcma.kernels.cuda import clock as clocks
from lcma.kernels.cuda import kernel_node as captures
from lcma.kernels.cuda.executor import TensorCore, TensorExecutor
from lcma.kernels.request import Request
from lcma.kernels.structured import decode


class Event:
    """Records the next of some times in milliseconds, and has passed unless it is said to be queued."""

    def __init__(self, times, device):
        self.times, self.device, self.passed = times, SimpleNamespace(index=device), True

    def record(self):
        self.milliseconds = next(self.times)

    def query(self):
        return self.passed

    def elapsed_time(self, other):
        return other.milliseconds - self.milliseconds


@pytest.fixture
def gpu(monkeypatch):
    """A stand-in for a GPU: `made` lists its events, `device` is the current one, `times` are those of the records."""
    found = SimpleNamespace(made=[], device=0, times=iter(()))

    def make(enable_timing):
        assert enable_timing
        found.made.append(Event(found.times, found.device))
        return found.made[-1]

    monkeypatch.setattr(torch.cuda, "Event", make)
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: found.device, raising=False)
    return found


@pytest.mark.parametrize(("gpu_ms", "host", "queued", "seconds"), [
    (2.0, 1e-3, False, 2e-3), (0.02, 1e-4, False, 1e-4), (2.0, 9e-3, True, 2e-3),
])  # fmt: skip
def test_a_call_takes_as_long_as_the_slower_of_gpu_and_host(monkeypatch, gpu, gpu_ms, host, queued, seconds):
    gpu.times, times = iter([5.0, 5.0 + gpu_ms]), iter([1.0, 1.0 + host])
    monkeypatch.setattr(clocks.time, "perf_counter", lambda: next(times))
    clock = clocks.EventClock()
    started = clock.begin()
    gpu.made[0].passed = not queued
    reading = clock.end(started)
    gpu.made[1].passed = False
    assert clock.seconds(reading) is None
    gpu.made[1].passed = True
    assert clock.seconds(reading) == pytest.approx(seconds)


def test_events_are_recorded_again_once_they_were_read_on_their_gpu(gpu):
    gpu.times = iter(range(1, 100))
    clock = clocks.EventClock()
    first, second = clock.end(clock.begin()), clock.end(clock.begin())
    assert (clock.seconds(first), clock.seconds(second), len(gpu.made)) == (1e-3, 1e-3, 4)
    third = clock.end(clock.begin())
    assert (clock.seconds(third), len(gpu.made)) == (1e-3, 4)
    gpu.device = 1
    assert (clock.seconds(clock.end(clock.begin())), len(gpu.made)) == (1e-3, 6)


@pytest.fixture
def streams(monkeypatch):
    """The state of the current stream; barriers know of no stream yet, and have four counters."""
    state = SimpleNamespace(cuda_stream=7, capturing=False)
    for name, value in {"_slabs": {}, "_taken": {}, "_of_stream": {}, "SLOTS": 4}.items():
        monkeypatch.setattr(decode, name, value)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: state.capturing)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: state.cuda_stream, raising=False)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    return state


class Like:
    dtype, device = torch.float16, torch.device("cpu")

    @staticmethod
    def new_empty(size):
        return torch.empty(size, dtype=torch.float16)


def counter_of():
    _, counter = decode.barrier_memory(Like, 1)
    assert (counter.shape, counter.dtype, counter.item()) == ((1,), torch.int32, 0)
    return counter


def test_a_stream_has_one_counter_and_each_captured_launch_its_own(streams):
    first = counter_of()
    assert counter_of().data_ptr() == first.data_ptr()
    streams.cuda_stream = 8
    seen = {first.data_ptr(), counter_of().data_ptr()}
    streams.capturing = True
    seen |= {counter_of().data_ptr(), counter_of().data_ptr()}
    assert len(seen) == 4
    assert all(abs(a - b) >= 128 for a in seen for b in seen if a != b)


def test_without_a_free_counter_new_ones_are_zeroed(streams):
    known = []
    for capturing in (True, False, *[True] * 5):
        streams.capturing = capturing
        known.append(counter_of())
    assert len({one.data_ptr() for one in known}) == 7


def test_launches_of_a_stream_share_their_memory_and_captured_ones_do_not(streams):
    def memory(size):
        return decode.barrier_memory(Like, size)[0]

    first = memory(64)
    assert memory(32) is first
    assert memory(65).numel() == 65
    streams.cuda_stream = 8
    other = memory(8)
    assert other.numel() == 8
    streams.capturing = True
    assert memory(8) is not other


def test_a_thread_is_relaxed_within_and_as_before_after(monkeypatch):
    mode = ctypes.c_int(0)  # global, the driver's default

    def exchange(given):
        pointer = ctypes.cast(given, ctypes.POINTER(ctypes.c_int))
        mode.value, pointer[0] = pointer[0], mode.value
        return 0

    monkeypatch.setattr(captures, "_exchange", lambda: exchange)
    with captures.beside_captures():
        assert mode.value == captures.RELAXED
        with pytest.raises(MemoryError), captures.beside_captures():
            raise MemoryError
        assert mode.value == captures.RELAXED
    assert mode.value == 0


def test_without_a_driver_nothing_is_exchanged(monkeypatch):
    def missing(name):
        raise OSError(name)

    captures._exchange.cache_clear()
    monkeypatch.setattr(captures.ctypes, "CDLL", missing)
    with captures.beside_captures():
        assert captures._exchange()(mode := ctypes.c_int(2)) is None
        assert mode.value == 2
    captures._exchange.cache_clear()


class Classical(TensorCore):
    """The classical product, of operands whose memory holds their elements."""

    def run(self, a, b, out):
        assert not any(map(lazy, (a, b, out)))
        out.copy_(a @ b)


def lazy(x):
    return x.is_conj() or x.is_neg()


@pytest.mark.parametrize("which", ["a", "b", "out"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_lazy_views_are_resolved(which, dtype):
    def made(name, rows, cols):
        if name != which:
            return torch.randn(rows, cols, dtype=getattr(torch, dtype))
        conjugate = torch.randn(rows, cols, dtype=torch.complex128).conj()
        view = conjugate.imag if dtype == "float64" else conjugate
        assert lazy(view)
        return view

    a, b, out = made("a", 3, 4), made("b", 4, 5), made("out", 3, 5)
    executor = TensorExecutor(Request(3, 4, 5, dtype), Classical(Request(3, 4, 5, dtype)), 0)
    wanted = a @ b
    torch.testing.assert_close(executor.run(a, b), wanted)
    assert executor.run(a, b, out) is out
    torch.testing.assert_close(out, wanted)


pytest.importorskip("torch")
pytest.importorskip("triton")

PROGRAM = """
import sys
from lcma.kernels import Request, machine_for, plan_for
from lcma.kernels.cuda import bench, precompile
from lcma.kernels.cuda.precompile_worker import OfflineDriver

OfflineDriver.activate("cuda", 90, 32)
request = Request(512, 512, 512, "float64", device="cuda")
machine = machine_for(request, measure=False)
plan = plan_for(request, "strassen", strategy="scheme:batched", machine=machine)
events = []
precompile.compile_ahead = bench.compile_ahead = lambda calls, progress: events.extend(precompile.kernels_of(calls))
bench.CudaBench().precompile([plan], print)
print(len(events), "sympy" in sys.modules, "torch._dynamo" in sys.modules)
"""


@pytest.mark.slow
def test_recording_imports_neither_sympy_nor_the_compiler_of_torch(home, tmp_path, new_process):
    said = new_process(PROGRAM, TRITON_CACHE_DIR=str(tmp_path))  # kernels that are there already are not recorded
    assert said.split() == ["3", "False", "False"]
