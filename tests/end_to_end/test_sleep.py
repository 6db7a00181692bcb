"""A computer that sleeps in the middle of training. Its minute of sleep is spent on the tests of `test_cli_verbs`."""

import pytest

from sleeper import Sleeper
from terminals import skep

pytestmark = pytest.mark.alone

MINUTE, LONG = 60, 600
ANSWER_SECONDS = 20
"""Within which somebody who asks a skep that sleeps must be told something."""


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_computer_falls_asleep_in_the_middle_of_training(sleeper):
    sleeper.fall_asleep()
    code, told = skep(sleeper.running.home, "status", within=ANSWER_SECONDS)
    assert code == 1
    assert "did not answer" in told["title"]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_minute_later_it_is_back_in_the_swarm_and_its_ledger_agrees(sleeper):
    sleeper.wake_up(MINUTE)
    sleeper.check_that_it_comes_back()
    sleeper.check_what_it_leaves()


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_computer_that_slept_long_is_back_in_the_swarm_and_its_ledger_agrees(practice, tmp_path):
    sleeper = Sleeper(tmp_path / "home", practice)
    try:
        sleeper.fall_asleep()
        sleeper.wake_up(LONG)
        sleeper.check_that_it_comes_back()
        sleeper.check_what_it_leaves()
    finally:
        sleeper.end()
