import pytest

from skep.core.plain_text import LONGEST_REASON, first_line


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("It broke.\nmore"), "It broke"),
        (TimeoutError(), "TimeoutError"),
        (ValueError("\nmore"), "ValueError"),
        (OSError("x" * 1000), "x" * LONGEST_REASON),
    ],
    ids=["lines", "nothing", "an empty line", "long"],
)
def test_an_error_is_named_in_one_line(error, words):
    assert first_line(error) == words
