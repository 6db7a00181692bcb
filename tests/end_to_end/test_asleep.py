"""A computer that sleeps during training for a minute, and for ten minutes in the long suite."""

import pytest

from sleeper import Sleeper
from terminals import skep

MINUTE, LONG = 60, 600
ANSWER_SECONDS = 20
"""Seconds within which a verb must return although the skep it asks is asleep."""


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seconds", [MINUTE, pytest.param(LONG, marks=pytest.mark.long)])
def test_a_computer_that_slept_is_back_in_the_swarm_and_its_ledger_agrees(practice, tmp_path, seconds):
    sleeper = Sleeper(tmp_path / "home", practice)
    try:
        sleeper.fall_asleep()
        code, told = skep(sleeper.running.home, "status", within=ANSWER_SECONDS)
        assert code == 1
        assert "did not answer" in told["title"]
        sleeper.wake_up(seconds)
        sleeper.check_that_it_comes_back()
        sleeper.check_what_it_leaves()
    finally:
        sleeper.end()
