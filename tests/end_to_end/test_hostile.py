"""A stock peer attacks a run of real workers: single cases of `make test-hostile`."""

import contextlib
from pathlib import Path

import pytest
from faults import hostile
from faults.places import own_folder

from skep.core.session.messages import ContributionConfirmed, ContributionLost
from skep.core.text import Text

SECONDS, SAMPLES = 5.0, 512


@pytest.fixture(scope="module")
def swarm():
    with own_folder() as folder, contextlib.ExitStack() as ending:
        yield hostile.Swarm(folder, ending, SECONDS, SAMPLES)


@pytest.mark.parametrize("name", ["nested record", "a false epoch", "frames that are no message"])
def test_an_attack_harms_neither_those_who_train_nor_a_newcomer(swarm, name):
    row = hostile.attacked(swarm, name)
    assert row["said"]["tried"]
    assert not row["ended"]
    assert row["joined"] is not None
    assert row["confirmed"] is not None
    assert row["memory"] <= hostile.MEMORY


def test_the_names_are_those_of_all_attacks():
    assert len(set(hostile.attacks())) == hostile.COUNT


def test_there_are_at_least_40_ways_to_get_in():
    tests = Path(__file__).parents[1]
    assert sum(file.read_text().count("@pytest.mark.way_in") for file in tests.rglob("test_*.py")) >= 40


def test_what_was_missed_is_judged_as_such():
    good = {
        "attack": "a", "said": {"tried": 1}, "ended": [], "joined": 5.0, "confirmed": 2.0, "memory": 10.0, "epochs": [102],
        "lost": [102], "target": 100,
    }  # fmt: skip
    rows = [good | {"attack": str(number)} for number in range(hostile.COUNT)]
    assert not any(row.missed for row in hostile.judged(rows))
    for spoilt in (
        {"said": {}},
        {"ended": ["seed"]},
        {"joined": None},
        {"confirmed": None},
        {"memory": 300.0},
        {"epochs": [106, 106]},
        {"epochs": [94, 94]},
        {"epochs": []},
        {"epochs": [102, 102, 102], "lost": [52, 50, 52]},
    ):
        assert sum(row.missed for row in hostile.judged([*rows, good | spoilt])) == 1, spoilt
    assert sum(row.missed for row in hostile.judged(rows[1:])) == 1


def test_an_epoch_has_the_samples_that_all_honest_peers_brought_to_its_round_also_those_that_were_lost():
    workers = [Said([Confirmed(4, 100), Confirmed(5, samples), Confirmed(6, 30)]) for samples in (30, 32, 34)]
    workers[2].messages[1] = Lost(5, 34)
    newcomer = Said([Confirmed(5, 7)])  # epoch 6 has not ended for it
    assert hostile.epochs([*workers, newcomer], [1, 1, 1]) == [(30 + 32 + 34 + 7, 34)]
    newcomer.messages.append(Confirmed(6, 8))
    workers[0].messages.pop()  # nor for all others
    assert hostile.epochs([*workers, newcomer], [1, 1, 1]) == [(30 + 32 + 34 + 7, 34)]


class Said:
    """A worker that has said these messages."""

    def __init__(self, messages):
        self.messages = messages

    def all(self, *kinds):
        return [message for message in self.messages if isinstance(message, kinds)]


def Confirmed(epoch, samples):  # noqa: N802 - stands for the message
    return ContributionConfirmed("id", epoch, samples, 2)


def Lost(epoch, samples):  # noqa: N802 - as above
    return ContributionLost("id", epoch, samples, Text("round.part_round_failed"), 2)
