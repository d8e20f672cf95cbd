"""What a scheme must be predicted to gain before a GPU's product is given to it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lcma.kernels.dense.cuda import gains


def plan(seconds, dtype="float32", product=(1024, 1024, 1024)):
    stages = (SimpleNamespace(product=None), SimpleNamespace(product=product))
    return SimpleNamespace(seconds=seconds, stages=stages, request=SimpleNamespace(dtype=dtype))


@pytest.mark.parametrize(
    ("dtype", "product", "enough", "too_much"),
    [
        ("float32", (1024, 1024, 1024), 0.97, 0.99),
        ("tf32", (1024, 1024, 1024), 0.97, 0.99),
        ("float32", (1024, 1024, 128), 0.92, 0.94),
        ("bfloat16", (1024, 1024, 1024), 0.89, 0.91),
        ("bfloat16", (1024, 1024, 128), 0.89, 0.91),
    ],
)
def test_less_sure_predictions_must_promise_more(dtype, product, enough, too_much):
    vendor = plan(1.0, dtype)
    assert gains(plan(enough, dtype, product), vendor)
    assert not gains(plan(too_much, dtype, product), vendor)


def test_what_is_not_predicted_gains_nothing():
    assert not gains(plan(None), plan(1.0))
    assert not gains(plan(0.5), plan(None))
