"""What calls of the workbench's functions give."""

from ..refusal import has_value, values


@values(__file__)
def test_a_call_gives_what_the_table_says(modules, call, wanted):
    has_value(modules, call, wanted)
