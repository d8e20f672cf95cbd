"""Dtypes and precisions of requests, and their names together."""

import pytest

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
