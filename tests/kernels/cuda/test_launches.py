"""Launches of Triton kernels, with a fake kernel."""

import pytest

import lcma
from lcma.kernels.codegen.maps import maps_of
from lcma.kernels.codegen.triton_text import BY_ROWS, Direction
from lcma.kernels.cuda.combine import Combination
from lcma.schemes_db.straightline import program_of

torch = pytest.importorskip("torch")


class Kernel:
    """Counts what is looked up and compiled, what is started directly, and what a profiler sees of it."""

    def __init__(self):
        self.found, self.started, self.watched = [], [], []

    def __getitem__(self, grid):
        def find(*arguments, num_warps, **form):
            self.found.append((grid, arguments[2:], tuple(form.values()), num_warps))
            return Compiled(self)

        return find


class Compiled:
    function, packed_metadata = "function", "packed"

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        return lambda *again: self.kernel.watched.append((grid, again[2:]))

    def run(self, x, y, z, stream, function, packed, metadata, enter, leave, *again):
        assert (stream, function, packed, metadata, enter, leave) == (7, "function", "packed", None, None, None)
        self.kernel.started.append(((x, y, z), again[2:]))


def test_what_is_compiled_is_started_directly_from_then_on(monkeypatch):
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: 7, raising=False)
    maps, kernel = maps_of(program_of(lcma.resolve("strassen")[0])), Kernel()
    split = Combination(maps.left, Direction.TO_STACK, maps.left_blocks)
    monkeypatch.setattr(split, "_kernel", lambda *_: kernel)
    matrix, stack = torch.empty(3, 64, 1792), torch.empty(3, 7, 32, 896)
    for _ in range(3):
        split.run(matrix, stack)
    assert (len(kernel.found), len(kernel.started)) == (1, 2)
    (grid, numbers, form, warps), (again, same) = kernel.found[0], kernel.started[0]
    assert same == (*numbers, *form)
    assert again == grid == (4 * 32, 3, 1)  # 896 columns are covered by 4 tiles, of which the last is cut short
    assert form == (1, 256, 4, BY_ROWS, BY_ROWS)
    assert numbers[:7] == (64, 1792 // 4, 1792 // 4, 1, 64 * 1792 // 4, 32, 896 // 4)
    assert warps == 4
    with monkeypatch.context() as patch:
        patch.setattr(pytest.importorskip("triton").knobs.runtime, "launch_enter_hook", lambda metadata: None)
        split.run(matrix, stack)
    assert (kernel.watched, len(kernel.started)) == ([(grid, same)], 2)
    split.run(matrix[1:], stack[1:])
    split.run(torch.empty(3, 63, 1792), stack)
    assert len(kernel.found) == 3
    split.run(matrix[:0], stack[:0])
    assert len(kernel.found) == 3
