"""A peer of a small swarm is killed, frozen, or leaves: the shortest cases of `make test-faults PART=stall`."""

import pytest
from faults.stall import NEAR_END, Case, beyond_its_share, in_a_swarm, judged, moment_of

GATHERING = 0.8
"""The moment of an epoch of 8 s at which peers look for the group of its round. If the peer that freezes leads it, the others
wait for it."""


@pytest.mark.alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("fault", "moment"),
    [
        ("kill", 0.5),
        ("freeze", 0.5),
        ("freeze", GATHERING),
        pytest.param("leave", 0.5, marks=pytest.mark.long),
    ],
)
def test_what_a_lost_peer_costs_the_two_others_is_within_the_bounds(fault, moment):
    row = in_a_swarm("skep", Case(3, fault, moment, calm=1, after=2, seconds=8.0))
    assert [each.name for each in judged([row]) if each.missed] == [], row
    assert min(row["confirmed"]) >= 1, row


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_of_two_peers_the_other_does_not_wait_for_one_that_is_killed():
    row = in_a_swarm("skep", Case(2, "kill", 0.5, calm=1, after=2, seconds=8.0))
    assert [each.name for each in judged([row]) if each.missed] == [], row


OLD = {
    "kind": "skep",
    "peers": 4,
    "fault": "kill",
    "calm_blocked": [0.0, 0.3, 0.0],
    "stall": [0.0, 0.0, 0.0],
    "lost": [0, 0, 1],
    "samples": [244, 322, 324],
    "target": 320,
}
"""A row of batches of 2, as rows were before they said so."""


def test_an_epoch_may_lack_the_share_of_the_peer_that_died_in_it_and_a_batch_of_each_survivor():
    assert beyond_its_share(OLD) == pytest.approx(-4 / 6)
    assert beyond_its_share(OLD | {"batch": 16, "samples": [192, 320]}) == 1.0
    assert [each.name for each in judged([OLD]) if each.missed] == []


def test_one_long_stall_of_several_is_missed():
    rows = [OLD, OLD, OLD | {"stall": [0.0, 1.5, 0.0]}]
    assert [each.name for each in judged(rows) if each.missed] == ["skep, 4 peers, kill: stall, largest"]


def test_samples_of_the_only_peer_that_is_left_count_though_it_has_no_other_to_average_with():
    row = OLD | {"peers": 2, "lost": [3], "lost_samples": [160, 320, 320]}
    assert [each.name for each in judged([row]) if each.missed] == []


def test_one_fault_of_five_comes_near_the_end_of_an_epoch():
    moments = [moment_of(run, 4, "kill") for run in range(10)]
    assert [moment >= NEAR_END for moment in moments] == [*[False] * 4, True] * 2


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"stall": [0.0, 1.5, 0.0]}, "stall, largest"),
        ({"calm_blocked": [0.0, 1.1, 0.0]}, "the same in an epoch before it"),
        ({"lost": [0, 2, 0]}, "lost per survivor"),
        ({"samples": [232, 322, 324]}, "samples lacking at once beyond its share"),
        ({"samples": [244, 322, 340]}, "samples off later"),
        ({"lost_samples": [0, 20, 0]}, "samples off later"),
    ],
)
def test_each_quantity_beyond_its_bound_is_missed_by_our_peers_only(changed, named):
    row = OLD | changed
    assert [each.name for each in judged([row]) if each.missed] == [f"skep, 4 peers, kill: {named}"]
    assert [each.name for each in judged([row | {"kind": "stock"}]) if each.missed] == []
