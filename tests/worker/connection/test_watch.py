"""The watch over a worker's parts, with parts that end, hang, and answer late."""

import pytest

from english import in_english
from skep.core.text import verbatim
from skep.worker.connection.watch import Part, Watch


class Process:
    """A part whose end and answers the test decides."""

    def __init__(self, name):
        self.is_over, self.answers = False, True
        self.part = Part(verbatim(name), lambda: self.is_over, self.ask)

    def ask(self, within):
        if not self.answers:
            raise TimeoutError


class Watched:
    def __init__(self):
        self.first, self.second = Process("The first"), Process("The second")
        self.watch = Watch([self.first.part, self.second.part], lambda problem: None)

    def problem(self, seconds=1, each=1.0):
        """What the watch finds within `seconds`; it looks after `each` of them and asks after ten looks."""
        for number in range(round(seconds / each)):
            if number % 10 == 0:
                for questions in self.watch._questions:
                    questions.ask()
            if problem := self.watch.look(each):
                return in_english(problem.title)
        return None


@pytest.fixture
def watched():
    return Watched()


def test_parts_that_answer_are_left_alone(watched):
    assert watched.problem(seconds=600) is None


def test_a_part_that_ended_is_named_at_once(watched):
    watched.second.is_over = True
    assert watched.problem() == "The second ended."


def test_a_part_that_does_not_answer_for_a_minute_is_named(watched):
    watched.second.answers = False
    assert watched.problem(seconds=59) is None
    assert watched.problem(seconds=12) == "The second has not answered for 1\N{THIN SPACE}min."


def test_a_part_that_answers_late_is_left_alone(watched):
    for _ in range(5):
        watched.first.answers = False
        assert watched.problem(seconds=50) is None
        watched.first.answers = True
        assert watched.problem(seconds=1) is None


def test_of_a_sleep_of_the_computer_five_seconds_count(watched):
    watched.first.answers = watched.second.answers = False
    for _ in range(10):
        assert watched.problem(seconds=3600, each=3600.0) is None
