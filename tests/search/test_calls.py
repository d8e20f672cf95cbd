"""Calls of tables: wrong ones are refused before anything is computed, each with its reason; others have a value."""

from ..refusal import has_value, refuses_as_said, values, wrong_calls
from .plain_terms import holds


@wrong_calls(__file__)
def test_a_wrong_call_is_refused_in_one_line(modules, call, error):
    refuses_as_said(modules, call, error)


@values(__file__)
def test_a_call_has_its_value(modules, call, wanted):
    has_value(modules, call, wanted, holds=holds)
