"""A computer that sleeps during training for a minute, and for ten minutes in the long suite."""

import pytest

from sleeper import Sleeper
from terminals import OTHER_EPOCHS, practice_swarm, skep

MINUTE, LONG = 60, 600
ANSWER_SECONDS = 20
"""Seconds within which a verb must return although the skep it asks is asleep."""
LONG_EPOCHS = [*OTHER_EPOCHS, "16"]
SLEEP, COMPUTED_SECONDS, EPOCH_SECONDS = 40, 3.0, 600


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


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_what_was_computed_before_a_sleep_goes_into_the_round_of_the_same_epoch(tmp_path):
    with practice_swarm(tmp_path / "practice", LONG_EPOCHS, peers=1) as link:
        sleeper = Sleeper(tmp_path / "home", link, EPOCH_SECONDS)
        try:
            known = sleeper.running.named("contribution")
            latest = sleeper.running.named("progress")[-1]
            before = sleeper.running.wait_for(
                lambda event: (
                    event["event"] == "progress"
                    and event["epoch"] > known[-1]["epoch"]
                    and event["compute_seconds"] > latest["compute_seconds"] + COMPUTED_SECONDS
                    and (event["seconds_left"] or 0) > 2 * SLEEP
                ),
                EPOCH_SECONDS,
            )
            sleeper.fall_asleep()
            sleeper.wake_up(SLEEP)
            settled = sleeper.running.wait_for(
                lambda event: event["event"] == "contribution" and event["epoch"] >= before["epoch"] and is_end(event),
                EPOCH_SECONDS,
            )
            assert (settled["state"], settled["epoch"]) == ("confirmed", before["epoch"])
        finally:
            sleeper.end()


def is_end(event):
    return event["state"] != "pending"
