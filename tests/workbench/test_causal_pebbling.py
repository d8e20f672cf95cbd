"""Schedules without a workspace, on a machine that has no more memory than they say, and what no schedule can do."""

import numpy as np
import pytest

import lcma
from lcma.errors import PlanError
from lcma.schemes_db import Kind
from lcma.workbench.analysis.pebbling import Work, blocks_beyond, in_place, sums_of, weights

SIZE = 6


def blocks(matrix, rows, cols):
    """(rows * cols, SIZE, SIZE): the blocks of a matrix, row by row."""
    return matrix.reshape(rows, SIZE, cols, SIZE).swapaxes(1, 2).reshape(-1, SIZE, SIZE)


def worked(scheme, schedule, a, b):
    """The wanted blocks of C by a schedule; sums of operands are made in the cells that it names for them."""
    rng = np.random.default_rng(9)
    cells = rng.integers(-99, 99, (schedule.cells + schedule.beyond, SIZE, SIZE))  # what was there before
    m, k, n = scheme.target.shape
    operands = blocks(a, m, k), blocks(b, k, n)
    written = set()
    for step in schedule.steps:
        if isinstance(step, Work):
            places, factors = list(step.sums), []
            for factor, parts in zip(scheme.factors[:2], operands, strict=True):
                row = factor.dense[step.product].ravel()
                if np.abs(row).sum() == 1:
                    factors.append(row[row != 0][0] * parts[np.flatnonzero(row)[0]])
                    continue
                place = places.pop()
                cells[place] = np.tensordot(row, parts, 1)
                written.discard(place)
                factors.append(cells[place])
            assert not places
            term = step.factor * factors[0] @ factors[1]
        else:
            assert step.source in written
            term = step.factor * cells[step.source]
        cells[step.goal] = cells[step.goal] + term if step.goal in written else term
        written.add(step.goal)
    return cells[: schedule.cells]


@pytest.mark.parametrize(
    ("name", "beyond"),
    [("eca-stage1", 0), ("4x4x4-tri-out-r34-sparse", 0), ("4x4x4-tri-out-r34", 2), ("strassen", 1)],
)
def test_a_schedule_runs_in_the_output_and_in_the_memory_that_it_states(name, beyond):
    scheme = lcma.resolve(name)[0]
    assert blocks_beyond(scheme) == beyond
    schedule = in_place(scheme, beam=4)
    assert schedule.beyond == beyond
    assert sorted(step.product for step in schedule.steps if isinstance(step, Work)) == list(range(scheme.rank))
    # Fewer additions of blocks than where all products stand in a memory of their own.
    assert schedule.additions < np.abs(weights(scheme)).sum() - schedule.cells
    rng, (m, k, n) = np.random.default_rng(0), scheme.target.shape
    a, b = rng.integers(-9, 9, (m * SIZE, k * SIZE)), rng.integers(-9, 9, (k * SIZE, n * SIZE))
    wanted = blocks(a @ b, m, n)[scheme.target.kind_arrays[2].ravel() != Kind.ABSENT]
    np.testing.assert_array_equal(worked(scheme, schedule, a, b), wanted)


def test_half_products_may_run_as_halves():
    scheme = lcma.resolve("eca-stage1")[0]
    schedule = in_place(scheme, beam=1)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-9, 9, (4 * SIZE, 4 * SIZE)) for _ in range(2))
    sides = [
        np.tensordot(f.dense.reshape(34, 16), blocks(x, 4, 4), 1)
        for f, x in zip(scheme.factors[:2], (a, b), strict=True)
    ]
    kinds = [kind.half for kind in lcma.schemes_db.costs.product_kinds(scheme)]
    products = [np.tril(x @ y) if half else x @ y for x, y, half in zip(*sides, kinds, strict=True)]
    places = [(i, j) for i in range(4) for j in range(i + 1)]
    for (i, j), got in zip(places, schedule.run(products), strict=True):
        wanted = blocks(a @ b, 4, 4)[4 * i + j]
        np.testing.assert_array_equal(*((np.tril(x) for x in (got, wanted)) if i == j else (got, wanted)))


def possible(columns, sums, cells):
    """Return whether some order of the products fits: all of them, by the sets of products that can have been done."""
    rank = len(sums)
    reached = {0}
    for _ in range(rank):
        after = set()
        for done in reached:
            for r in range(rank):
                now = done | 1 << r
                if not done >> r & 1 and now not in after:
                    held = np.linalg.matrix_rank(columns[:, [t for t in range(rank) if now >> t & 1]])
                    if held + sums[r] <= cells:
                        after.add(now)
        reached = after
    return bool(reached)


@pytest.mark.parametrize("name", ["strassen", "winograd", pytest.param("2x2x4", marks=pytest.mark.slow)])
def test_no_order_of_the_products_needs_less(name):
    scheme = lcma.resolve(name)[0]
    columns, sums, beyond = weights(scheme), sums_of(scheme), blocks_beyond(scheme)
    assert possible(columns, sums, len(columns) + beyond)
    assert beyond > 0
    assert not possible(columns, sums, len(columns) + beyond - 1)


def test_fractions_are_refused():
    with pytest.raises(PlanError, match="over Z"):
        in_place(lcma.resolve("4x4x4-r47-mod2")[0])
