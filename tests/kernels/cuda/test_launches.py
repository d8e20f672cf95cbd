"""Launches of Triton kernels, with a fake kernel."""

import pytest

import lcma
from lcma.kernels.codegen.maps import maps_of
from lcma.kernels.codegen.triton_text import BY_ROWS, Direction
from lcma.kernels.cuda.combine import Combination
from lcma.schemes_db.straightline import program_of

torch = pytest.importorskip("torch")


class Kernel:
    """Counts what is looked up and compiled, and what is started directly."""

    def __init__(self):
        self.found, self.started = [], []

    def __getitem__(self, grid):
        def find(*arguments, num_warps, **form):
            self.found.append((grid, arguments[2:], tuple(form.values()), num_warps))
            return {grid: lambda *again: self.started.append((grid, again[2:]))}

        return find


def test_what_is_compiled_is_started_directly_from_then_on(monkeypatch):
    maps, kernel = maps_of(program_of(lcma.resolve("strassen")[0])), Kernel()
    split = Combination(maps.left, Direction.SPLIT, maps.left_blocks)
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
    split.run(matrix[1:], stack[1:])
    split.run(torch.empty(3, 63, 1792), stack)
    assert len(kernel.found) == 3
    split.run(matrix[:0], stack[:0])
    assert len(kernel.found) == 3
