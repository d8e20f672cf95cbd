"""Run with TRITON_INTERPRET=1 (test_fused.py does): products added into C as they are worked, in float16.

Fresh memory is NaN, and C lies in the middle of a wider matrix whose border must stay as it was.
"""

from __future__ import annotations

import pytest
import torch

from lcma.errors import PlanError
from lcma.kernels.cuda.flat_program import flat_program
from lcma.kernels.cuda.fused import FusedProducts
from lcma.kernels.cuda.level import Method, cuda_level
from lcma.kernels.cuda.naive import apply_map, combine
from lcma.kernels.cuda.tiles import Tile
from lcma.kernels.dense.arrangements import arrangements, levels_of
from lcma.schemes_db.resolve import resolve

CANARY = 7.5
TILE = Tile(16, 32, 16, 4, 2)


def program_of(name):
    return arrangements(levels_of([resolve(name)[0]], 1))[0][1]


def stacks(program, m, k, n):
    level = cuda_level(program)
    a, b = (torch.randn(1, *shape, dtype=torch.float64).half() for shape in ((m, k), (k, n)))
    bm, bk, bn = level.blocks(m, k, n, 2)
    lefts, rights = torch.empty(1, level.flat.rank, bm, bk).half(), torch.empty(1, level.flat.rank, bk, bn).half()
    combine(level.left, a, lefts)
    combine(level.right, b, rights)
    return a, b, lefts, rights


def canvas_of(m, n):
    canvas = torch.full((m, n + 24), CANARY, dtype=torch.float16)
    out = canvas.as_strided((1, m, n), (m * (n + 24), n + 24, 1))
    out.fill_(torch.nan)
    return canvas, out


@pytest.mark.parametrize(
    ("name", "sizes", "split", "aligned"),
    [
        ("strassen", (96, 32, 192), False, False),
        ("strassen", (70, 50, 130), True, True),
        ("strassen", (16, 16, 16), True, False),
        ("winograd", (96, 32, 128), True, False),
        ("winograd", (70, 20, 70), False, False),
        ("2x2x3", (80, 24, 200), True, True),
        ("2x3x2", (70, 50, 150), True, False),
    ],
)
def test_products_are_added_into_c(name, sizes, split, aligned):
    program = program_of(name)
    lefts, rights = stacks(program, *sizes)[2:]
    canvas, out = canvas_of(sizes[0], sizes[2])
    flat = flat_program(program)
    FusedProducts(flat).run(lefts, rights, out, split=split, aligned=aligned, tile=TILE)
    blocks = apply_map(flat.merge, list(lefts[0].double() @ rights[0].double()))
    grid = program.target.shape[0], program.target.shape[2]
    at = dict(zip(flat.maps.stored, blocks, strict=True))
    truth = torch.cat([torch.cat([at[i, j] for j in range(grid[1])], 1) for i in range(grid[0])])
    truth = truth[: sizes[0], : sizes[2]]
    # Nothing is rounded to float16 but C itself.
    assert (out[0].double() - truth).norm() <= 3e-4 * truth.norm()
    assert (canvas[:, sizes[2] :] == CANARY).all()


def test_a_cut_group_changes_no_bit():
    program = program_of("strassen")
    _, _, lefts, rights = stacks(program, 160, 48, 256)
    found = []
    for split, aligned in ((False, False), (True, False), (True, True)):
        _, out = canvas_of(160, 256)
        FusedProducts(flat_program(program)).run(lefts, rights, out, split=split, aligned=aligned, tile=TILE)
        found.append(out.clone())
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_several_items():
    program = program_of("strassen")
    made = [stacks(program, 64, 32, 64) for _ in range(3)]
    lefts, rights = (torch.cat([one[place] for one in made]) for place in (2, 3))
    out = torch.full((3, 64, 64), torch.nan).half()
    FusedProducts(flat_program(program)).run(lefts, rights, out, tile=TILE)
    for (a, b, *_), item in zip(made, out, strict=True):
        truth = a[0].double() @ b[0].double()
        assert (item.double() - truth).norm() <= 4e-3 * truth.norm()


def test_what_cannot_be_fused_is_refused():
    with pytest.raises(PlanError, match="accumulators, more than"):
        FusedProducts(flat_program(program_of("4x4x4")))
    program = program_of("strassen")
    _, _, lefts, rights = stacks(program, 32, 32, 32)
    fused = FusedProducts(flat_program(program))
    with pytest.raises(PlanError, match="in bfloat16 and float16"):
        fused.run(lefts.float(), rights.float(), torch.empty(1, 32, 32))
    with pytest.raises(PlanError, match="contiguous"):
        fused.run(lefts.mT, rights, torch.empty(1, 32, 32).half())


@pytest.mark.parametrize(("names", "sizes"), [(("strassen",), (64, 32, 96)), (("2x2x3", "strassen"), (70, 50, 130))])
def test_a_fused_level_is_the_product(names, sizes):
    level = cuda_level(arrangements(levels_of([resolve(name)[0] for name in names], 1))[0][1], Method.FUSED)
    m, k, n = sizes
    a, b = torch.randn(2, m, k, dtype=torch.float64), torch.randn(2, k, n, dtype=torch.float64)
    canvas, out = canvas_of(m, n)
    level.run(a[:1].half(), b[:1].half(), out)
    truth = a[0] @ b[0]
    assert (out[0].double() - truth).norm() <= 5e-3 * truth.norm()
    assert (canvas[:, n:] == CANARY).all()
    both = torch.full((2, m, n), torch.nan).half()
    level.run(a.half(), level.prepare(b[:1].half()), both)
    truth = a @ b[:1]
    assert (both.double() - truth).norm() <= 5e-3 * truth.norm()
