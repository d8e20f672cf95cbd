"""Wrong calls are refused before anything is computed, each with its reason."""

from ..refusal import refuses_as_said, wrong_calls


@wrong_calls(__file__)
def test_a_wrong_call_is_refused_in_one_line(modules, call, error):
    refuses_as_said(modules, call, error)
