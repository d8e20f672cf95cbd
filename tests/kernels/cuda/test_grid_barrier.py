"""Counters of barriers across the programs of a launch, with a processor in place of the GPU."""

from types import SimpleNamespace

import pytest
import torch

from lcma.kernels.cuda import grid_barrier


@pytest.fixture
def gpu(monkeypatch):
    state = SimpleNamespace(cuda_stream=7, capturing=False)
    monkeypatch.setattr(grid_barrier, "_slabs", {})
    monkeypatch.setattr(grid_barrier, "_taken", {})
    monkeypatch.setattr(grid_barrier, "SLOTS", 4)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: state.capturing)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: state.cuda_stream, raising=False)
    monkeypatch.setattr(grid_barrier, "_of_stream", {})
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    return state


class Like:
    dtype, device = torch.float16, torch.device("cpu")

    @staticmethod
    def new_empty(size):
        return torch.empty(size, dtype=torch.float16)


def place():
    _, counter = grid_barrier.barrier_memory(Like, 1)
    assert counter.shape == (1,)
    assert counter.dtype == torch.int32
    assert counter.item() == 0
    return counter


def test_a_stream_has_one_counter_and_each_captured_launch_its_own(gpu):
    first = place()
    assert place().data_ptr() == first.data_ptr()
    gpu.cuda_stream = 8
    seen = {first.data_ptr(), place().data_ptr()}
    gpu.capturing = True
    seen |= {place().data_ptr(), place().data_ptr()}
    assert len(seen) == 4
    assert all(abs(a - b) >= 128 for a in seen for b in seen if a != b)


def test_without_a_free_counter_new_ones_are_zeroed(gpu):
    gpu.capturing = True
    before = place()
    gpu.capturing = False
    known = [place()]
    gpu.capturing = True
    known += [place() for _ in range(5)]
    assert len({one.data_ptr() for one in [before, *known]}) == 7


def test_launches_of_a_stream_share_their_memory_and_captured_ones_do_not(gpu):
    def memory(size):
        return grid_barrier.barrier_memory(Like, size)[0]

    first = memory(64)
    assert memory(32) is first
    assert memory(65).numel() == 65
    gpu.cuda_stream = 8
    other = memory(8)
    assert other.numel() == 8
    gpu.capturing = True
    assert memory(8) is not other
