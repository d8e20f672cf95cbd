"""What calls of the workbench's functions give."""

from ..refusal import plain, value_of, values


@values(__file__)
def test_a_call_gives_what_the_table_says(modules, call, wanted):
    assert plain(value_of(modules, call)) == wanted
