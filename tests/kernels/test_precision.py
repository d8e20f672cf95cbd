"""Dtypes and precisions of requests, and their names together."""

import pytest

from lcma import PlanError
from lcma.kernels.precision import FORMER_NAMES, NAMES, Arithmetic, arithmetic_of, fields_of
from lcma.kernels.request import Request


@pytest.mark.parametrize(
    "arithmetic", [*NAMES, Arithmetic("float64"), Arithmetic("bfloat16")], ids=lambda one: one.name
)
def test_a_name_is_that_of_a_dtype_and_a_precision(arithmetic):
    assert arithmetic_of(arithmetic.name) == arithmetic
    request = Request(8, 8, 8, device="cuda", **fields_of(arithmetic.name))
    assert (request.arithmetic, request.dtype) == (arithmetic.name, arithmetic.dtype)
    assert (f" in {arithmetic.precision}" in str(request)) == (arithmetic.precision is not None)


def test_former_names_are_read():
    assert {arithmetic_of(former).name for former in FORMER_NAMES} == set(FORMER_NAMES.values())


def test_requests_of_different_precisions_differ():
    plain, rounded = (Request(8, 8, 8, device="cuda", precision=one) for one in (None, "tf32"))
    assert plain != rounded
    assert hash(plain) != hash(rounded)
    assert (plain.itemsize, plain.unit, rounded.itemsize, rounded.unit) == (4, 2.0**-24, 4, 2.0**-11)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"dtype": "tf32", "device": "cuda"}, "dtype tf32 is not supported; it is the precision tf32 of float32"),
        ({"precision": "tf32"}, "precision tf32 is of products of floats on a GPU; leave it out"),
        ({"precision": "fast", "device": "cuda"}, "not for float32; choose tf32 or fp32-accurate, or leave it out"),
        (
            {"dtype": "float64", "precision": "tf32", "device": "cuda"},
            "tf32 is not for float64; leave it out",
        ),
    ],
)
def test_what_a_precision_is_not_for_is_refused(fields, reason):
    with pytest.raises(PlanError, match=reason):
        Request(8, 8, 8, **fields)
