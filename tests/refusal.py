"""A user's mistake is refused in one line."""

import pytest

from lcma.errors import PlanError


def refuses_with(error, message, call, /, *arguments, **options):
    """Check that a call raises an error of one line that matches a pattern."""
    with pytest.raises(error, match=message) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)


def refuses(message, call, /, *arguments, **options):
    """Check that a call raises a PlanError of one line that matches a pattern."""
    refuses_with(PlanError, message, call, *arguments, **options)
