"""A stock peer attacks a run of real workers: single cases of `make test-hostile`."""

import contextlib
from pathlib import Path

import pytest
from faults import hostile
from faults.places import own_folder

SECONDS = 5.0


@pytest.fixture(scope="module")
def swarm():
    with own_folder() as folder, contextlib.ExitStack() as ending:
        yield hostile.Swarm(folder, ending, SECONDS)


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
        "attack": "a", "said": {"tried": 1}, "ended": [], "joined": 5.0, "confirmed": 2.0, "memory": 10.0, "epochs": [520]
    }  # fmt: skip
    rows = [good | {"attack": str(number)} for number in range(hostile.COUNT)]
    assert not any(row.missed for row in hostile.judged(rows))
    for spoilt in (
        {"said": {}},
        {"ended": ["seed"]},
        {"joined": None},
        {"confirmed": None},
        {"memory": 300.0},
    ):
        assert sum(row.missed for row in hostile.judged([*rows, good | spoilt])) == 1, spoilt
    assert sum(row.missed for row in hostile.judged(rows[1:])) == 1
