"""Calls that have the values of values.toml."""

from ..values import has_value, values


@values(__file__)
def test_a_call_has_its_value(modules, call, value):
    has_value(modules, call, value)
