"""Operands whose sums are made once."""

from dataclasses import replace

import numpy as np
import pytest

from lcma.errors import PlanError
from lcma.kernels import Request, matmul, plan_for
from lcma.kernels.cpu.slabs import Slabs
from lcma.kernels.products.prepared import Prepared

from ..refusal import refuses


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("levels", [1, 2])
def test_many_products_with_one_operand(strassen, draw, order, levels):
    b = np.asarray(draw((37, 53), "float64"), order=order)
    expected = b.copy()
    prepared = Prepared(b, 40, strassen, levels)
    b[...] = np.nan  # it was copied
    assert prepared.nbytes > 0
    for rows in (40, 41, 100, 3):
        a = draw((rows, 37), "float64")
        np.testing.assert_allclose(a @ prepared, a @ expected, atol=1e-12)
        np.testing.assert_allclose(np.asfortranarray(a) @ prepared, a @ expected, atol=1e-12)
    out = np.empty((100, 53))
    assert matmul(np.ones((100, 37)), prepared, out=out) is out
    np.testing.assert_allclose(out, np.ones((100, 37)) @ expected, atol=1e-12)
    batch = draw((2, 30, 37), "float64")
    np.testing.assert_allclose(batch @ prepared, batch @ expected, atol=1e-12)


def test_the_sums_are_made_once(strassen, draw, no_rates, monkeypatch):
    prepared = Prepared(draw((30, 30), "float32"), 30, strassen)
    sides = []
    original = Slabs._sums
    monkeypatch.setattr(Slabs, "_sums", lambda self, side, *rest: sides.append(side) or original(self, side, *rest))
    draw((30, 30), "float32") @ prepared
    assert sides == [0]


def test_what_does_not_fit(strassen):
    prepared = Prepared(np.ones((4, 4)), 4, strassen)
    with pytest.raises(PlanError, match="inner sizes differ"):
        np.ones((4, 5)) @ prepared


def test_an_executor_takes_its_prepared_operand_in_place_of_b(strassen, draw):
    a, b = draw((3, 30, 37), "float64"), draw((37, 53), "float64")
    executor = plan_for(Request.of(a, b), strassen, 2, strategy="scheme:batched").build()
    expected, prepared = executor.run(a, b), executor.prepare(b)
    assert prepared.nbytes > b.nbytes
    np.testing.assert_array_equal(executor.run(a, prepared), expected)
    # B itself is not read any more: its blocks overhang the grid, so that every sum is memory of its own.
    np.testing.assert_array_equal(executor.run(a, replace(prepared, b=np.full_like(b, np.nan))), expected)


def test_what_cannot_be_prepared(strassen):
    b = np.ones((8, 8))
    looped = plan_for(Request(8, 8, 8, "float64"), strassen, strategy="scheme:loop").build()
    refuses(r"use batch(ed)? or tasks", looped.prepare, b)
    vendor = plan_for(Request(8, 8, 8, "int8", max_abs=1), strategy="vendor").build()
    refuses("keeps no sums of B", vendor.prepare, b)
    executor = plan_for(Request(8, 8, 8, "float64"), strassen, strategy="scheme:batched").build()
    refuses("one contiguous matrix", executor.prepare, np.ones((2, 8, 8)))
    refuses("plan again", executor.run, np.ones((9, 8)), executor.prepare(b))
